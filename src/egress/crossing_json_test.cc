#include "egress/crossing_json.h"

namespace firestop::egress {
namespace {

Crossing full() {
  Crossing c;
  c.kind = Crossing::Kind::kRequest;
  c.verdict = "denied";
  c.code = "egress.path";
  c.rule = "egress[2]";
  c.scheme = "https";
  c.host = "api.example.com";
  c.port = 443;
  c.address = "192.0.2.1:443";
  c.method = "GET";
  c.path = "/v2";
  c.status = 403;
  c.credential = "model";
  c.in_body = "model forge";
  c.detail = "why";
  c.bytes_out = 7;
  c.bytes_in = 1ull << 62;
  c.started_us = 1795959211123456;
  c.took_us = 99;
  c.source_port = 40000;
  return c;
}

TEST(CrossingJson, ComesBackAsItWas) {
  const auto json = to_json(full());
  const auto back = crossing_of(*codec::parse_json(codec::write_json(json)));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->bytes_in, 1ull << 62);
  EXPECT_EQ(json.as_object()->size(), 19u);
  Crossing least;
  least.verdict = "allowed";
  EXPECT_EQ(codec::write_json(to_json(least)), R"({"kind":"name","verdict":"allowed"})");
}

TEST(CrossingJson, IsToldInTheSameWords) {
  Crossing odd = full(), least;
  odd.path.assign(5000, 'x');
  odd.host = "a\x1b]0;\x07\xff\"\\ \xc3\xa4\xe2\x80\xae\n";
  odd.detail.assign(kMostDetail - 1, 'y');
  odd.detail += "\xc3\xa4";
  odd.bytes_out = ~0ull;
  odd.took_us = -3;
  odd.status = -1;
  least.verdict = "allowed";
  for (const Crossing& one : {full(), odd, least}) {
    codec::Json json = to_json(one);
    (*json.as_object())["type"] = "crossing";
    std::string told;
    append_told(told, one);
    EXPECT_EQ(told, codec::write_json(json));
  }
}

TEST(CrossingJson, WhatAGuestWroteIsBoundedAndPrintable) {
  Crossing c = full();
  c.path.assign(100000, 'x');
  c.path += "\x1b[2J";
  c.host = "a\x1b]0;x\x07\xff";
  const auto json = to_json(c);
  EXPECT_LE(json.string_or("path", "").size(), kMostDetail);
  EXPECT_EQ(json.string_or("host", "").find('\x1b'), std::string::npos);
}

TEST(CrossingJson, inv04_WhatIsNoCrossingIsRefused) {
  for (const char* text : {"[]", "{}", R"({"kind":"name"})", R"({"kind":"odd","verdict":"allowed"})",
                           R"({"kind":1,"verdict":"allowed"})", R"({"kind":"name","verdict":"maybe"})"})
    EXPECT_FALSE(crossing_of(*codec::parse_json(text))) << text;
  const auto odd = crossing_of(*codec::parse_json(
      R"({"kind":"name","verdict":"denied","port":70000,"status":-1,"bytes_in":-5,"started_us":1.5,"host":7})"));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->port, 65535);
  EXPECT_EQ(odd->status, 0);
  EXPECT_EQ(odd->bytes_in, 0u);
  EXPECT_EQ(odd->host, "");
}

}  // namespace
}  // namespace firestop::egress
