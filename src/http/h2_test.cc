#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>

#include "base/fd.h"
#include "http/h2_client.h"
#include "http/h2_native.h"
#include "http/h2_server.h"

namespace firestop::http {
namespace {

using std::chrono::milliseconds;

class PlainStream : public ByteStream {
 public:
  PlainStream(Loop& loop, UniqueFd fd) : fd_(std::move(fd)) {
    watch_ = loop.watch(fd_.get(), events_, [this](int events) {
      if ((events & Loop::kWritable) && writable_) writable_();
      if ((events & (Loop::kReadable | Loop::kHangup)) && readable_) readable_();
    });
  }
  Io read(char* buffer, size_t size) override {
    const ssize_t n = ::read(fd_.get(), buffer, size);
    if (n > 0) return {State::kOk, static_cast<size_t>(n)};
    if (n == 0) return {State::kEnd, 0};
    return {errno == EAGAIN ? State::kWouldBlock : State::kFailed, 0};
  }
  Io write(std::string_view bytes) override {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return {State::kOk, static_cast<size_t>(n)};
    return {errno == EAGAIN ? State::kWouldBlock : State::kFailed, 0};
  }
  void shutdown_write() override { ::shutdown(fd_.get(), SHUT_WR); }
  void want(std::function<void()> readable, std::function<void()> writable) override {
    readable_ = std::move(readable);
    writable_ = std::move(writable);
  }
  void pause_reading(bool paused) override { change(Loop::kReadable, !paused); }
  void wait_writable(bool wait) override { change(Loop::kWritable, wait); }

 private:
  void change(int event, bool on) {
    events_ = on ? events_ | event : events_ & ~event;
    watch_->set_events(events_);
  }
  UniqueFd fd_;
  int events_ = Loop::kReadable;
  Loop::Handle watch_;
  std::function<void()> readable_, writable_;
};

// Keeps what it is told; consumes at once unless `holding`.
struct Listener : StreamReceiver {
  void on_response(ResponseHead head) override { responses.push_back(std::move(head)); }
  void on_data(std::string_view bytes) override {
    data.append(bytes);
    if (!holding && stream) stream->consumed(bytes.size());
  }
  void on_end(Headers given) override {
    ended = true;
    trailers = std::move(given);
    if (at_end) at_end();
  }
  void on_abort(const std::string& why) override {
    aborted = why;
    if (at_end) at_end();
  }
  void on_writable() override {
    ++writable;
    if (at_writable) at_writable();
  }

  std::deque<ResponseHead> responses;
  std::string data, aborted;
  Headers trailers;
  Stream* stream = nullptr;
  bool holding = false, ended = false;
  int writable = 0;
  std::function<void()> at_end, at_writable;
};

struct Taken {
  RequestHead head;
  std::unique_ptr<ServerStream> stream;
  Listener listener;
};

class H2Test : public ::testing::Test, public RequestHandler {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    server_end_ = UniqueFd(pair[0]);
    client_end_ = UniqueFd(pair[1]);
    server_ = std::make_unique<H2Server>(loop_, std::make_unique<PlainStream>(loop_, std::move(server_end_)),
                                         *this, [this](const std::string& why) {
                                           server_closed_ = why.empty() ? "in order" : why;
                                           server_.reset();
                                         });
  }
  void connect() {
    client_ = std::make_unique<H2Client>(
        loop_, std::make_unique<PlainStream>(loop_, std::move(client_end_)),
        [this](const std::string& why) { client_closed_ = why.empty() ? "in order" : why; },
        [this] { ++idle_; });
  }
  void TearDown() override {
    stream_.reset();
    taken_.clear();
    client_.reset();
    server_.reset();
  }

  void on_request(RequestHead head, std::unique_ptr<ServerStream> stream) override {
    auto taken = std::make_unique<Taken>();
    taken->head = std::move(head);
    taken->stream = std::move(stream);
    taken->listener.stream = taken->stream.get();
    taken->stream->set_receiver(&taken->listener);
    taken_.push_back(std::move(taken));
    if (at_request_) at_request_(*taken_.back());
  }

  static RequestHead request(Body body = {}) {
    RequestHead head;
    head.method = body.kind == Body::Kind::kNone ? "GET" : "POST";
    head.scheme = "https";
    head.authority = {"api.example.com", 443};
    head.target = "/v1/x?y=%2F";
    head.headers = {{"Accept", "*/*"}, {"X-Two", "1"}, {"X-Two", "2"}};
    head.body = body;
    return head;
  }

  void open(const RequestHead& head) {
    auto opened = client_->open(head, listener_);
    ASSERT_TRUE(opened) << opened.error().message;
    stream_ = std::move(*opened);
    listener_.stream = stream_.get();
  }

  // Runs until `done` says so; fails after a generous while.
  void run_until(const std::function<bool()>& done) {
    const auto tick = loop_.every(milliseconds(1), [&] {
      if (done()) loop_.stop();
    });
    const auto limit = loop_.once(std::chrono::seconds(20), [&] {
      ADD_FAILURE() << "it did not come to an end";
      loop_.stop();
    });
    loop_.run();
  }

  void send_raw(std::string_view bytes) {
    ASSERT_EQ(::send(client_end_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  Loop loop_;
  UniqueFd server_end_, client_end_;
  std::unique_ptr<H2Server> server_;
  std::unique_ptr<H2Client> client_;
  std::vector<std::unique_ptr<Taken>> taken_;
  std::function<void(Taken&)> at_request_;
  Listener listener_;
  std::unique_ptr<ClientStream> stream_;
  std::string server_closed_, client_closed_;
  int idle_ = 0;
};

TEST_F(H2Test, ARequestAndItsAnswer) {
  connect();
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({200, {{"Set-Cookie", "a"}, {"Set-Cookie", "b"}}, {Body::Kind::kLength, 5}});
    taken.stream->send_data("hello");
    taken.stream->send_end({});
  };
  open(request());
  run_until([&] { return listener_.ended; });
  ASSERT_EQ(taken_.size(), 1u);
  const auto& head = taken_[0]->head;
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.target, "/v1/x?y=%2F");
  EXPECT_EQ(head.authority, (Authority{"api.example.com", 443}));
  EXPECT_EQ(head.headers.size(), 3u);
  EXPECT_EQ(head.body.kind, Body::Kind::kNone);
  EXPECT_TRUE(taken_[0]->listener.ended);
  ASSERT_EQ(listener_.responses.size(), 1u);
  EXPECT_EQ(listener_.responses[0].status, 200);
  EXPECT_EQ(listener_.responses[0].headers.size(), 2u);
  EXPECT_EQ(listener_.responses[0].body.length, 5u);
  EXPECT_EQ(listener_.data, "hello");
  run_until([&] { return idle_ == 1; });
}

TEST_F(H2Test, BodiesTrailersAndInformationalHeadsBothWays) {
  connect();
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({103, {{"link", "</a>"}}, {}});
    taken.listener.at_end = [&taken] {
      taken.stream->send_response({200, {}, {Body::Kind::kUnknown, 0}});
      taken.stream->send_data(taken.listener.data);
      taken.stream->send_end({{"grpc-status", "0"}});
    };
  };
  RequestHead head = request({Body::Kind::kUnknown, 0});
  head.headers.push_back({"te", "trailers"});
  open(head);
  stream_->send_data("abc");
  stream_->send_data("def");
  stream_->send_end({{"x-sum", "6"}});
  run_until([&] { return listener_.ended; });
  EXPECT_EQ(taken_[0]->listener.trailers.at(0).name, "x-sum");
  EXPECT_EQ(listener_.responses.size(), 2u);
  EXPECT_EQ(listener_.responses[0].status, 103);
  EXPECT_EQ(listener_.data, "abcdef");
  EXPECT_EQ(listener_.trailers.at(0).value, "0");
}

TEST_F(H2Test, WhoDoesNotReadHoldsUpTheSenderAndNothingGrows) {
  connect();
  open(request({Body::Kind::kUnknown, 0}));
  run_until([&] { return taken_.size() == 1; });
  Taken& taken = *taken_[0];
  taken.listener.holding = true;
  size_t sent = 0;
  const std::string block(64 << 10, 'x');
  const auto send = [&] {
    while (stream_->buffered() <= kHighWater) {
      stream_->send_data(block);
      sent += block.size();
      if (sent >= (64u << 20)) return;
    }
  };
  listener_.at_writable = send;
  send();
  const auto pause = loop_.once(milliseconds(200), [&] { loop_.stop(); });
  loop_.run();
  EXPECT_LE(taken.listener.data.size(), size_t{H2Session::kConnectionWindow});
  EXPECT_LE(sent, H2Session::kConnectionWindow + kHighWater + 2 * block.size() + (1u << 20));
  const size_t before = sent;
  taken.listener.holding = false;
  taken.stream->consumed(taken.listener.data.size());
  run_until([&] { return sent > before + (4u << 20); });
}

TEST_F(H2Test, AnAbortOfEitherSideReachesTheOther) {
  connect();
  open(request({Body::Kind::kUnknown, 0}));
  run_until([&] { return taken_.size() == 1; });
  stream_.reset();
  run_until([&] { return !taken_[0]->listener.aborted.empty(); });
  Listener second;
  auto opened = client_->open(request(), second);
  ASSERT_TRUE(opened);
  run_until([&] { return taken_.size() == 2; });
  taken_[1]->stream->abort();
  run_until([&] { return !second.aborted.empty(); });
  EXPECT_FALSE(second.ended);
}

TEST_F(H2Test, AStreamThatWasSentWholeMayBeLetGo) {
  connect();
  const std::string large(600 << 10, 'y');
  at_request_ = [&](Taken& taken) {
    taken.stream->send_response({413, {}, {Body::Kind::kLength, large.size()}});
    taken.stream->send_data(large);
    taken.stream->send_end({});
    taken.stream.reset();  // the request's body is not wanted
  };
  open(request({Body::Kind::kUnknown, 0}));
  stream_->send_data("some");
  run_until([&] { return listener_.ended || !listener_.aborted.empty(); });
  EXPECT_TRUE(listener_.ended);
  EXPECT_EQ(listener_.data.size(), large.size());
}

TEST_F(H2Test, AConnectionThatGoesAwayAbortsItsStreams) {
  connect();
  open(request());
  run_until([&] { return taken_.size() == 1; });
  server_.reset();
  run_until([&] { return !listener_.aborted.empty(); });
  EXPECT_FALSE(client_->can_open());
}

TEST_F(H2Test, ShutDownEndsAfterTheLastStream) {
  connect();
  open(request());
  run_until([&] { return taken_.size() == 1; });
  server_->shut_down();
  taken_[0]->stream->send_response({204, {}, {}});
  run_until([&] { return listener_.ended && !server_closed_.empty(); });
  EXPECT_EQ(server_closed_, "in order");
}

// Frames made by hand: a length of 3 bytes, type, flags, stream (RFC 9113 section 4.1).
std::string frame(size_t type, int flags, uint32_t stream, std::string_view body) {
  std::string out;
  for (const size_t byte :
       {body.size() >> 16, body.size() >> 8, body.size(), type, static_cast<size_t>(flags),
        static_cast<size_t>(stream >> 24), static_cast<size_t>(stream >> 16),
        static_cast<size_t>(stream >> 8), static_cast<size_t>(stream)})
    out.push_back(static_cast<char>(byte & 0xFF));
  return out.append(body);
}

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Literal fields without indexing (RFC 7541 section 6.2.2), names and values below 127 bytes.
std::string fields(const Headers& headers) {
  std::string out;
  for (const auto& header : headers) {
    out.push_back('\0');
    out.push_back(static_cast<char>(header.name.size()));
    out += header.name;
    out.push_back(static_cast<char>(header.value.size()));
    out += header.value;
  }
  return out;
}

Headers good() {
  return {{":method", "GET"}, {":scheme", "https"}, {":authority", "a.example"}, {":path", "/"}};
}

TEST_F(H2Test, RequestsThatCouldBeReadInTwoWaysReachNobody) {
  struct Row {
    const char* what;
    Headers headers;
  };
  const auto with = [](const Headers& more) {
    Headers out = good();
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  const auto without = [](const char* name, const Headers& more) {
    Headers out;
    for (const auto& header : good())
      if (header.name != name) out.push_back(header);
    out.insert(out.begin(), more.begin(), more.end());
    return out;
  };
  const std::vector<Row> rows = {
      {"transfer-encoding", with({{"transfer-encoding", "chunked"}})},
      {"connection", with({{"connection", "close"}})},
      {"upgrade", with({{"upgrade", "websocket"}})},
      {"proxy-connection", with({{"proxy-connection", "keep-alive"}})},
      {"te", with({{"te", "gzip"}})},
      {"upper case", with({{"X-Upper", "1"}})},
      {"line break in a value", with({{"x", "a\r\nb: c"}})},
      {"bare LF in a value", with({{"x", "a\nb"}})},
      {"NUL in a value", with({{"x", std::string("a\0b", 3)}})},
      {"colon in a name", with({{"a:b", "1"}})},
      {"space in a name", with({{"a b", "1"}})},
      {"two lengths", with({{"content-length", "1"}, {"content-length", "2"}})},
      {"a length with a sign", with({{"content-length", "+1"}})},
      {"another host", with({{"host", "b.example"}})},
      {"two hosts", with({{"host", "a.example"}, {"host", "a.example"}})},
      {"no authority", without(":authority", {})},
      {"user in the authority", without(":authority", {{":authority", "u@a.example"}})},
      {"path in the authority", without(":authority", {{":authority", "a.example/x"}})},
      {"no path", without(":path", {})},
      {"empty path", without(":path", {{":path", ""}})},
      {"absolute path", without(":path", {{":path", "https://b.example/"}})},
      {"space in the path", without(":path", {{":path", "/a HTTP/1.1"}})},
      {"fragment", without(":path", {{":path", "/a#b"}})},
      {"star for GET", without(":path", {{":path", "*"}})},
      {"no scheme", without(":scheme", {})},
      {"another scheme", without(":scheme", {{":scheme", "file"}})},
      {"no method", without(":method", {})},
      {"CONNECT", {{":method", "CONNECT"}, {":authority", "a.example:443"}}},
      {"method with a space", without(":method", {{":method", "GET /x"}})},
      {"pseudo-header last",
       {{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {"x", "1"}, {":authority", "a.example"}}},
      {"unknown pseudo-header", without("", {{":protocol", "websocket"}})},
      {"a length in disguise", with({{"content_length", "5"}})},
      {"expectation unknown", with({{"expect", "200-ok"}})},
  };
  send_raw(std::string(kPreface) + frame(4, 0, 0, ""));
  uint32_t id = 1;
  for (const auto& row : rows) {
    send_raw(frame(1, 0x5, id, fields(row.headers)));
    id += 2;
  }
  // The connection still serves what is right.
  send_raw(frame(1, 0x5, id, fields(good())));
  run_until([&] { return !taken_.empty() || !server_closed_.empty(); });
  ASSERT_EQ(taken_.size(), 1u) << server_closed_;
  EXPECT_EQ(taken_[0]->head.authority.host, "a.example");
}

// RFC 8441: a client may ask for it only after it was offered; who asks all the same gets a stream error, and
// the connection goes on.
TEST_F(H2Test, AWebSocketInAStreamIsNotOfferedAndRefused) {
  send_raw(std::string(kPreface) + frame(4, 0, 0, "") +
           frame(1, 0x4, 1,
                 fields({{":method", "CONNECT"},
                         {":protocol", "websocket"},
                         {":scheme", "https"},
                         {":path", "/chat"},
                         {":authority", "a.example"},
                         {"sec-websocket-version", "13"}})) +
           frame(1, 0x5, 3, fields(good())));
  run_until([&] { return !taken_.empty(); });
  ASSERT_EQ(taken_.size(), 1u);
  EXPECT_EQ(taken_[0]->head.method, "GET");
  std::string got(65536, '\0');
  got.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(client_end_.get(), got.data(), got.size()))));
  bool reset = false, settings = false;
  for (size_t at = 0; at + 9 <= got.size();) {
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(got[at + i])); };
    const size_t length = byte(0) << 16 | byte(1) << 8 | byte(2), type = byte(3), ack = byte(4),
                 stream = byte(8);
    if (type == 3 && stream == 1) reset = byte(9 + 3) == NGHTTP2_PROTOCOL_ERROR;
    if (type == 4 && ack == 0) settings = true;
    for (size_t item = 9; type == 4 && item + 6 <= 9 + length; item += 6)
      EXPECT_NE(byte(item + 1), static_cast<size_t>(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL));
    at += 9 + length;
  }
  EXPECT_TRUE(settings);
  EXPECT_TRUE(reset);
}

TEST_F(H2Test, ABodyThatIsNotAsLongAsSaidIsAborted) {
  Headers headers = good();
  headers[0].value = "POST";
  headers.push_back({"content-length", "5"});
  send_raw(std::string(kPreface) + frame(4, 0, 0, "") + frame(1, 0x4, 1, fields(headers)) +
           frame(0, 0x1, 1, "abc"));
  run_until([&] { return taken_.size() == 1 && !taken_[0]->listener.aborted.empty(); });
  EXPECT_FALSE(taken_[0]->listener.ended);
}

TEST_F(H2Test, CookiesInCrumbsAreOne) {
  Headers headers = good();
  headers.push_back({"cookie", "a=1"});
  headers.push_back({"cookie", "b=2"});
  send_raw(std::string(kPreface) + frame(4, 0, 0, "") + frame(1, 0x5, 1, fields(headers)));
  run_until([&] { return taken_.size() == 1; });
  EXPECT_EQ(find_header(taken_[0]->head.headers, "cookie")->value, "a=1; b=2");
}

// Each kind of flood ends the connection, before it costs much, and the handler hears of at most a few
// requests.
class H2Flood : public H2Test, public ::testing::WithParamInterface<int> {};

TEST_P(H2Flood, EndsTheConnection) {
  std::string unit;
  Headers many = good();
  for (int i = 0; i < 300; ++i) many.push_back({"x", "1"});
  uint32_t id = 1;
  send_raw(std::string(kPreface) + frame(4, 0, 0, ""));
  Headers post = good();
  post[0].value = "POST";
  send_raw(frame(1, 0x4, id, fields(post)));
  const auto next = [&]() -> std::string {
    switch (GetParam()) {
      case 0:
        return frame(6, 0, 0, "12345678");  // PING
      case 1:
        return frame(4, 0, 0, "");  // SETTINGS
      case 2:
        return frame(2, 0, 1, std::string("\0\0\0\0\1", 5));  // PRIORITY
      case 3:
        return frame(8, 0, 0, std::string("\0\0\0\1", 4));  // WINDOW_UPDATE
      case 4:
        return frame(0, 0, 1, "");  // empty DATA
      case 5: {                     // rapid reset
        id += 2;
        return frame(1, 0x5, id, fields(good())) + frame(3, 0, id, std::string("\0\0\0\x08", 4));
      }
      default: {  // our own resets, provoked
        id += 2;
        return frame(1, 0x5, id, fields(many));
      }
    }
  };
  size_t sent = 0;
  while (server_closed_.empty() && sent < 20000) {
    std::string burst;
    for (int i = 0; i < 20; ++i) burst += next();
    sent += 20;
    if (::send(client_end_.get(), burst.data(), burst.size(), MSG_NOSIGNAL) < 0 && errno != EAGAIN) break;
    char sink[65536];
    while (::read(client_end_.get(), sink, sizeof sink) > 0) {
    }
    const auto pause = loop_.once(milliseconds(0), [&] { loop_.stop(); });
    loop_.run();
    if (taken_.size() > 64) taken_.erase(taken_.begin(), taken_.end() - 8);
  }
  run_until([&] { return !server_closed_.empty(); });
  EXPECT_LT(sent, 20000u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, H2Flood, ::testing::Range(0, 7));

}  // namespace
}  // namespace firestop::http
