#include "codec/http1.h"

#include <gtest/gtest.h>

#include "codec/http1_testing.h"

namespace firestop::codec {
namespace {

std::string read_requests(std::string_view bytes, size_t piece = SIZE_MAX) {
  Http1RequestReader reader;
  Http1Transcript transcript(reader);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    transcript.feed(bytes.substr(0, piece));
  return transcript.text();
}

std::string read_response(std::string_view bytes, std::string_view method = "GET", bool upgrade = false) {
  Http1ResponseReader reader;
  reader.expect(method, upgrade);
  Http1Transcript transcript(reader);
  transcript.feed(bytes);
  transcript.end();
  return transcript.text();
}

TEST(Http1, RequestsInARow) {
  EXPECT_EQ(
      read_requests("GET /a?b=%2F HTTP/1.1\r\nHost: Example.COM.:8080\r\nX-Two:  one \r\nx-two:two\r\n\r\n"
                    "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nExpect: 100-Continue\r\n\r\nabc"
                    "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n1;a=\"b "
                    "c\"\r\n!\r\n0\r\n"
                    "X-Sum: 1\r\n\r\n"
                    "HEAD / HTTP/1.0\r\nHost: a\r\n\r\n"),
      "GET  example.com 8080 /a?b=%2F | X-Two=one x-two=two | none keep\nend\n"
      "POST  a 0 / | | length 3 keep continue\n'abc'\nend\n"
      "PUT  a 0 /x | | chunked keep\n'hi!'\nend X-Sum=1\n"
      "HEAD  a 0 / | | none close\nend\n");
}

TEST(Http1, FormsOfTheTarget) {
  EXPECT_EQ(read_requests("GET http://A.example/x?y HTTP/1.1\r\nHost: a.example:80\r\n\r\n"
                          "GET https://a HTTP/1.1\r\nHost: a\r\n\r\n"
                          "GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n"
                          "OPTIONS http://[::1]:81 HTTP/1.1\r\nHost: [::1]:81\r\n\r\n"
                          "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"
                          "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n"),
            "GET http a.example 0 /x?y | | none keep\nend\n"
            "GET https a 0 / | | none keep\nend\n"
            "GET http a 0 /?q | | none keep\nend\n"
            "OPTIONS http ::1 81 * | | none keep\nend\n"
            "OPTIONS  a 0 * | | none keep\nend\n"
            "CONNECT  a.example 443  | | none keep\nend\n");
}

TEST(Http1, WhatConcernsOneConnectionGoesAway) {
  EXPECT_EQ(
      read_requests(
          "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 3\r\n"
          "Proxy-Connection: keep-alive\r\nUpgrade: h2c\r\nX-Kept: 2\r\nTE: trailers, gzip;q=0.5\r\n\r\n"),
      "GET  a 0 / | X-Kept=2 | none close\nend\n");
  EXPECT_EQ(read_requests("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n"),
            "GET  a 0 / | TE=trailers | none keep\nend\n");
}

TEST(Http1, AnUpgradeIsAWholeWordOfConnection) {
  const auto upgrade = [](std::string_view connection, std::string_view to) {
    return read_requests("GET / HTTP/1.1\r\nHost: a\r\nConnection: " + std::string(connection) +
                         "\r\nUpgrade: " + std::string(to) + "\r\n\r\n");
  };
  EXPECT_EQ(upgrade("keep-alive, Upgrade", "WebSocket"), "GET  a 0 / | | none keep websocket\nend\n");
  for (auto [connection, to] : {std::pair{"noupgrade", "websocket"},
                                {"upgrade-insecure", "websocket"},
                                {"close", "websocket"},
                                {"upgrade", "h2c"},
                                {"upgrade", "websocket2"},
                                {"upgrade", "h2c, websocket"}}) {
    EXPECT_EQ(upgrade(connection, to).find("websocket\n"), std::string::npos) << connection << to;
  }
  EXPECT_EQ(read_requests("POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
            "POST  a 0 / | | none keep\nend\n");
}

TEST(Http1, AfterAnUpgradeTheBytesThatFollowAreTheTunnels) {
  Http1RequestReader reader;
  Http1Transcript transcript(reader);
  std::string_view bytes =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x01!";
  ASSERT_EQ(reader.next(bytes)->event, Http1Reader::Event::kHead);
  reader.become_tunnel();
  EXPECT_EQ(reader.next(bytes)->data, "\x81\x01!");
}

TEST(Http1, Responses) {
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nhi"),
            "200 | Set-Cookie=a Set-Cookie=b | length 2 body keep\n'hi'\nend\n");
  EXPECT_EQ(read_response("HTTP/1.1 200\r\n\r\nhi"), "200 | | until close body close\n'hi'\nend\n");
  EXPECT_EQ(read_response("HTTP/1.0 404 Not \xc3\xa4\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"),
            "404 | | length 0 body keep\nend\n");
  EXPECT_EQ(read_response("HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 "
                          "No\r\nContent-Length: 0\r\n\r\n"),
            "100 | | none keep\n103 | Link=x | none keep\n204 | | none keep\nend\n");
  EXPECT_EQ(read_response("HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n"), "304 | | length 5 keep\nend\n");
  EXPECT_EQ(read_response("HTTP/1.1 304 Not\r\n\r\n"), "304 | | none keep\nend\n");
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD"),
            "200 | | length 5 keep\nend\n");
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD"),
            "200 | | chunked keep\nend\n");
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\n\r\n", "HEAD"), "200 | | none keep\nend\n");
  EXPECT_EQ(
      read_response("HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81", "GET", true),
      "101 | | none keep\n'\x81'\nend\n");
}

TEST(Http1, ABodyThatEndsEarlyIsNoBody) {
  for (const char* bytes : {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
                            "HTTP/1.1 2", "HTTP/1.1 200 OK\r\n"}) {
    const std::string text = read_response(bytes);
    EXPECT_TRUE(text.ends_with("http.truncated\n")) << bytes << "\n" << text;
  }
}

// Every place to cut at, alone and in pairs with pieces of one to five bytes.
TEST(Http1, EverySplitGivesTheSame) {
  const std::string good =
      "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\r\n\r\n"
      "PUT /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x\r\nd\r\n0\r\nX: "
      "y\r\n\r\n"
      "GET /c HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const std::string& bytes : {good, good + "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
                                   good + "PUT / HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n"}) {
    const std::string whole = read_requests(bytes);
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {
      Http1RequestReader reader;
      Http1Transcript transcript(reader);
      transcript.feed(std::string_view(bytes).substr(0, cut));
      transcript.feed(std::string_view(bytes).substr(cut));
      ASSERT_EQ(transcript.text(), whole) << cut;
    }
    for (size_t piece = 1; piece <= 5; ++piece) ASSERT_EQ(read_requests(bytes, piece), whole) << piece;
  }
}

TEST(Http1, LimitsHoldAtTheByte) {
  const auto line = [](size_t size) { return "GET /" + std::string(size - 16, 'a') + " HTTP/1.1\r\n"; };
  EXPECT_TRUE(read_requests(line(kMostHttpLine) + "Host: a\r\n\r\n").ends_with("end\n"));
  EXPECT_EQ(read_requests(line(kMostHttpLine + 1) + "Host: a\r\n\r\n"), "http.too_large\n");
  EXPECT_EQ(read_requests(std::string(kMostHttpLine + 1, 'A')), "http.too_large\n")
      << "no end of the line is waited for";

  std::string fields = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (size_t i = 1; i < kMostHttpFields; ++i) fields += "a: b\r\n";
  EXPECT_TRUE(read_requests(fields + "\r\n").ends_with("end\n"));
  EXPECT_EQ(read_requests(fields + "a: b\r\n\r\n"), "http.too_large\n");

  std::string head = line(kMostHttpLine) + "Host: a\r\nX: ";
  const std::string filled = head + std::string(kMostHttpHead - head.size() - 4, 'a') + "\r\n\r\n";
  ASSERT_EQ(filled.size(), kMostHttpHead);
  EXPECT_TRUE(read_requests(filled).ends_with("end\n"));
  EXPECT_EQ(read_requests(head + std::string(kMostHttpHead - head.size() - 3, 'a') + "\r\n\r\n"),
            "http.too_large\n");

  const std::string chunked = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_TRUE(read_requests(chunked + "1;" + std::string(kMostChunkExtension, 'x') + "\r\n")
                  .ends_with("http.too_large\n"));
  std::string many = chunked;
  for (size_t i = 0; i <= kMostChunkExtensions / 100; ++i) many += "1;" + std::string(99, 'x') + "\r\na\r\n";
  EXPECT_TRUE(read_requests(many).ends_with("http.too_large\n"));
  std::string trailers = chunked + "0\r\n";
  for (size_t i = 0; i < 40; ++i) trailers += "a: " + std::string(2000, 'b') + "\r\n";
  EXPECT_TRUE(read_requests(trailers).ends_with("http.too_large\n"));
}

TEST(Http1, AnErrorIsFinal) {
  Http1RequestReader reader;
  Http1Transcript transcript(reader);
  std::string_view bad = "GET / HTTP/1.1\r\nHost : a\r\n\r\n", good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_FALSE(reader.next(bad));
  EXPECT_FALSE(reader.next(good));
  EXPECT_FALSE(reader.end_of_input());
}

TEST(HttpField, Authorities) {
  EXPECT_EQ(parse_authority("A.b.:80"), (HttpAuthority{"a.b", 80}));
  EXPECT_EQ(parse_authority("[::FFFF:1.2.3.4]:1"), (HttpAuthority{"::ffff:1.2.3.4", 1}));
  EXPECT_EQ(authority_text("a", 443, 443), "a");
  EXPECT_EQ(authority_text("::1", 80, 443), "[::1]:80");
  for (const char* bad :
       {"",    ".",   "a..b", ".a", "a..",  "a:",  "a:0",      "a:080",  "a:65536", "a:1:2",
        "u@a", "a b", "a%2e", "[",  "[]",   "[a]", "[::1",     "[::1]x", "[::1]:",  "[::1%eth0]",
        "::1", "a/b", "a?",   "a#", "a\\b", "a,b", "\xc3\xa4", "*"}) {
    EXPECT_FALSE(parse_authority(bad)) << bad;
  }
  EXPECT_TRUE(parse_authority(std::string(kMostHost, 'a')));
  EXPECT_FALSE(parse_authority(std::string(kMostHost + 1, 'a')));
}

}  // namespace
}  // namespace firestop::codec
