// The guard over WebSockets: frames of both sides, whole and in pieces.
#include <gtest/gtest.h>

#include "egress/codes.h"
#include "egress/testing/guard_lab.h"

namespace firestop::egress {
namespace {

using http::find_header;
using http::ResponseHead;

// RFC 6455, section 5.2: a masked frame of the client, and one of the server.
std::string frame(std::string_view payload, bool masked, char first = '\x81') {
  std::string out{first};
  out += static_cast<char>((masked ? 0x80 : 0) | static_cast<int>(payload.size()));
  const std::string mask = "\x12\x34\x56\x78";
  if (masked) out += mask;
  for (size_t at = 0; at < payload.size(); ++at)
    out += masked ? static_cast<char>(payload[at] ^ mask[at % 4]) : payload[at];
  return out;
}

TEST_F(GuardTest, WebSockets) {
  const std::string text = placeholder("model"), value(kValue);
  auto head =
      request("GET", "api.example.com", "/v1/ws",
              {{"Authorization", "Bearer " + text}, {"Sec-WebSocket-Extensions", "permessage-deflate"}});
  head.upgrade = "websocket";
  ASSERT_EQ(admit(head), "");
  EXPECT_EQ(find_header(head.headers, "Sec-WebSocket-Extensions"), nullptr);
  ResponseHead response{.status = 101, .headers = {{"Upgrade", "websocket"}}};
  ASSERT_FALSE(exchange->answer(response));
  const std::string in = frame("hello", false) + frame("k " + value + "!", false) +
                         frame(value.substr(0, 5), false) + frame(value.substr(5), false);
  std::string out;
  for (const char c : in) ASSERT_FALSE(exchange->websocket_in()->feed({&c, 1}, out));
  ASSERT_FALSE(exchange->websocket_in()->finish(out));
  EXPECT_EQ(out.size(), in.size());
  EXPECT_TRUE(out.starts_with(frame("hello", false))) << out;
  EXPECT_EQ(out.find("value"), std::string::npos) << out;

  std::string sent;
  ASSERT_FALSE(exchange->websocket_out()->feed(frame("hello", true), sent));
  EXPECT_EQ(sent, frame("hello", true));
  ASSERT_FALSE(exchange->websocket_out()->feed(frame(text.substr(0, 20), true), sent));
  const auto denied = exchange->websocket_out()->feed(frame(text.substr(20), true), sent);
  ASSERT_TRUE(denied);
  EXPECT_TRUE(denied->alarm);
  EXPECT_EQ(sent, frame("hello", true));
}

class WebSocketTest : public GuardTest {
 protected:
  void open() {
    auto head =
        request("GET", "api.example.com", "/v1/ws", {{"Authorization", "Bearer " + placeholder("model")}});
    head.upgrade = "websocket";
    ASSERT_EQ(admit(head), "");
    ResponseHead response{.status = 101, .headers = {{"Upgrade", "websocket"}}};
    ASSERT_FALSE(exchange->answer(response));
  }
  static constexpr char kFirst = '\x01', kLast = '\x80', kPing = '\x89';
};

// Control frames may stand between the frames of a message (RFC 6455, section 5.4).
TEST_F(WebSocketTest, inv08_ControlFramesDoNotHideAValue) {
  open();
  const std::string value(kValue);
  for (const size_t cut : {size_t{1}, size_t{6}, value.size() - 1}) {
    const std::string ping = frame("still there?", false, kPing), empty = frame("", false, kPing);
    const std::string in = frame("a" + value.substr(0, cut), false, kFirst) + ping + empty +
                           frame(value.substr(cut) + "z", false, kLast);
    std::string out;
    for (const char c : in) ASSERT_FALSE(exchange->websocket_in()->feed({&c, 1}, out));
    ASSERT_EQ(out.size(), in.size()) << cut;
    EXPECT_EQ(out.substr(0, 3), in.substr(0, 3)) << cut;
    EXPECT_EQ(out.substr(3 + cut, ping.size() + empty.size()), ping + empty) << cut;
    EXPECT_EQ(out.back(), 'z');
    std::string text = out;
    text.erase(3 + cut, ping.size() + empty.size() + 2);
    EXPECT_EQ(text.find(value), std::string::npos) << cut;
    EXPECT_EQ(text.find(value.substr(value.size() - 8)), std::string::npos) << cut;
  }
  // In what control frames say themselves, with a message around it.
  const std::string in = frame("x", false, kFirst) + frame(value.substr(0, 9), false, kPing) +
                         frame("y", false, '\x00') + frame(value.substr(9), false, kPing) +
                         frame("z", false, kLast);
  std::string out;
  ASSERT_FALSE(exchange->websocket_in()->feed(in, out));
  ASSERT_FALSE(exchange->websocket_in()->finish(out));
  ASSERT_EQ(out.size(), in.size());
  EXPECT_EQ(out.find(value.substr(9)), std::string::npos);
}

TEST_F(WebSocketTest, inv08_ControlFramesDoNotHideAPlaceholder) {
  const std::string text = placeholder("model");
  for (const bool in_control : {false, true}) {
    open();
    std::string sent;
    const auto piece = [&](std::string_view part, char first) {
      return exchange->websocket_out()->feed(frame(part, true, in_control ? kPing : first), sent);
    };
    ASSERT_FALSE(piece(text.substr(0, 20), kFirst));
    ASSERT_FALSE(exchange->websocket_out()->feed(
        in_control ? frame("message", true) : frame("ping", true, kPing), sent));
    const auto denied = piece(text.substr(20), kLast);
    ASSERT_TRUE(denied) << in_control;
    EXPECT_TRUE(denied->alarm);
    EXPECT_EQ(sent, "");
  }
}

TEST_F(WebSocketTest, inv08_APlaceholderPassesOnlyWhereTheRuleSaysSo) {
  const std::string own = placeholder("model"), other = placeholder("forge");
  auto head = request("GET", "chat.example.com", "/v1/ws", {{"Authorization", "Bearer " + own}});
  head.upgrade = "websocket";
  ASSERT_EQ(admit(head), "");
  std::string sent;
  const std::string in = frame(own.substr(0, 20), true, kFirst) + frame(own.substr(20) + "!", true, kLast);
  ASSERT_FALSE(exchange->websocket_out()->feed(in, sent));
  EXPECT_EQ(sent, in);
  EXPECT_EQ(exchange->in_body(), "model");
  EXPECT_TRUE(exchange->websocket_out()->feed(frame(other, true), sent));
  EXPECT_EQ(sent, in);
}

// Frames wait behind what may become a value; an origin cannot make them wait without end.
TEST_F(WebSocketTest, FramesThatWaitAreBounded) {
  open();
  std::string out;
  ASSERT_FALSE(exchange->websocket_in()->feed(frame(kValue.substr(0, 8), false, kFirst), out));
  const std::string empty = frame("", false, kPing);
  std::optional<http::Denial> denied;
  int fed = 0;
  while (!denied && fed < 100000) {
    denied = exchange->websocket_in()->feed(empty, out);
    ++fed;
  }
  ASSERT_TRUE(denied);
  EXPECT_EQ(denied->code, codes::kBadRequest);
  EXPECT_LT(fed, 5000);
  // Where nothing waits there is no bound, in one piece neither.
  open();
  std::string many;
  for (int i = 0; i < 20000; ++i) many += empty;
  out.clear();
  ASSERT_FALSE(exchange->websocket_in()->feed(many, out));
  EXPECT_EQ(out, many);
}

}  // namespace
}  // namespace firestop::egress
