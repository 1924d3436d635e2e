#include "egress/mapping.h"

namespace firestop::egress {
namespace {

TEST(Mapping, IsReadAndWritten) {
  const auto mapping = parse_mapping("API.example.com.:443=127.0.0.1:8443");
  ASSERT_TRUE(mapping) << mapping.error().message;
  EXPECT_EQ(mapping->from, (http::Authority{"api.example.com", 443}));
  EXPECT_EQ(mapping->to, "127.0.0.1:8443");
  for (const char* text :
       {"a.example:443=[::1]:8443", "192.0.2.1:22=10.0.0.1:22", "[2001:db8::1]:443=10.0.0.1:1"}) {
    const auto read = parse_mapping(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(to_string(*read), text);
  }
}

TEST(Mapping, WhatIsNone) {
  for (const char* text :
       {"", "=", "a.example:443", "a.example=127.0.0.1:1", "a.example:443=127.0.0.1",
        "a.example:443=b.example:1", "a.example:443=localhost:1", "a.example:0=127.0.0.1:1",
        "a.example:443=127.0.0.1:0", "a.example:443=127.0.0.1:65536", "a.example:443=127.1:1",
        "a.example:443=::1:8443", ":443=127.0.0.1:1", "a.example:443 =127.0.0.1:1",
        "https://a.example:443=127.0.0.1:1", "a.example:443=127.0.0.1:1=2"}) {
    const auto mapping = parse_mapping(text);
    ASSERT_FALSE(mapping) << text;
    EXPECT_EQ(mapping.error().code, "mapping.bad");
  }
}

}  // namespace
}  // namespace firestop::egress
