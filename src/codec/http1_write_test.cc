#include <gtest/gtest.h>

#include "codec/http1.h"
#include "codec/http1_testing.h"

namespace firestop::codec {
namespace {

using Kind = Http1Framing::Kind;

TEST(Http1Write, WhatIsWrittenIsReadAgain) {
  std::string out;
  ASSERT_TRUE(append_http1_request(out, {"POST", "/a?b", "h:1"}, {{"A", "1"}, {"A", ""}, {"TE", "trailers"}},
                                   {Kind::kChunked, 0}, Http1Connection::kKeep));
  append_http1_chunk(out, "");
  append_http1_chunk(out, std::string(26, 'x'));
  ASSERT_TRUE(append_http1_last_chunk(out, {{"Sum", "2"}}));
  ASSERT_TRUE(append_http1_request(out, {"GET", "/", "h"}, {}, {}, Http1Connection::kUpgrade));
  ASSERT_TRUE(
      append_http1_request(out, {"OPTIONS", "*", "h"}, {}, {Kind::kLength, 0}, Http1Connection::kClose));
  Http1RequestReader reader;
  Http1Transcript transcript(reader);
  transcript.feed(out);
  EXPECT_EQ(transcript.text(), "POST  h 1 /a?b | A=1 A= TE=trailers | chunked keep\n'" +
                                   std::string(26, 'x') +
                                   "'\nend Sum=2\n"
                                   "GET  h 0 / | | none keep websocket\nend\n"
                                   "OPTIONS  h 0 * | | length 0 close\nend\n");
}

TEST(Http1Write, Responses) {
  std::string out;
  ASSERT_TRUE(append_http1_response(out, 101, {}, {}, Http1Connection::kUpgrade));
  EXPECT_EQ(out, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  out.clear();
  ASSERT_TRUE(append_http1_response(out, 299, {{"A", "b"}}, {Kind::kUntilClose, 0}, Http1Connection::kClose));
  EXPECT_EQ(out, "HTTP/1.1 299 \r\nA: b\r\nConnection: close\r\n\r\n");
}

TEST(Http1Write, WhatWouldBeReadInAnotherWayIsNotWritten) {
  std::string out = "before";
  const auto request = [&](const Http1RequestLine& line, const HttpFields& fields,
                           const Http1Framing& framing = {}) {
    const auto written = append_http1_request(out, line, fields, framing, Http1Connection::kKeep);
    EXPECT_EQ(out, "before");
    return written ? std::string("written") : written.error().code;
  };
  const Http1RequestLine good{"GET", "/", "h"};
  for (const HttpField& bad : HttpFields{{"A", "b\r\nC: d"},
                                         {"A", "b\n"},
                                         {"A", std::string("\0", 1)},
                                         {"A", " b"},
                                         {"A", "b\t"},
                                         {"A:", "b"},
                                         {"", "b"},
                                         {"A b", "c"},
                                         {"Host", "x"},
                                         {"content-length", "1"},
                                         {"Transfer-Encoding", "chunked"},
                                         {"CONNECTION", "x"},
                                         {"Upgrade", "x"}}) {
    EXPECT_EQ(request(good, {{"Ok", "1"}, bad}), "http.unwritable") << bad.name << ": " << bad.value;
  }
  for (const Http1RequestLine& bad : {Http1RequestLine{"GET", "/ HTTP/1.1\r\nX: y", "h"},
                                      {"GET", "", "h"},
                                      {"GET", "*", "h"},
                                      {"GET", "a", "h"},
                                      {"G T", "/", "h"},
                                      {"", "/", "h"},
                                      {"GET", "/", "h\r\n"},
                                      {"GET", "/", ""},
                                      {"CONNECT", "a:1", "b:1"}}) {
    EXPECT_EQ(request(bad, {}), "http.unwritable") << bad.method << bad.target << bad.host;
  }
  EXPECT_EQ(request(good, {}, {Kind::kUntilClose, 0}), "http.unwritable");
  EXPECT_FALSE(append_http1_response(out, 204, {}, {Kind::kLength, 0}, Http1Connection::kKeep));
  EXPECT_FALSE(append_http1_response(out, 200, {}, {}, Http1Connection::kUpgrade));
  EXPECT_FALSE(append_http1_response(out, 101, {}, {}, Http1Connection::kKeep));
  EXPECT_FALSE(append_http1_response(out, 600, {}, {}, Http1Connection::kKeep));
  EXPECT_FALSE(append_http1_last_chunk(out, {{"Content-Length", "1"}}));
  EXPECT_FALSE(append_http1_last_chunk(out, {{"A", "b\r\n"}}));
  EXPECT_EQ(out, "before");
}

}  // namespace
}  // namespace firestop::codec
