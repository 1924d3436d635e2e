#include "http/message.h"

#include <gtest/gtest.h>

namespace firestop::http {
namespace {

TEST(Message, AuthoritiesHaveOneForm) {
  struct Row {
    const char* text;
    const char* host;
    uint16_t port;
  };
  constexpr Row kRows[] = {
      {"api.example.com", "api.example.com", 443},     {"API.Example.COM.", "api.example.com", 443},
      {"a.example:8443", "a.example", 8443},           {"192.0.2.1:1", "192.0.2.1", 1},
      {"[2001:DB8::1]", "2001:db8::1", 443},           {"[::1]:65535", "::1", 65535},
      {"_acme.example.com", "_acme.example.com", 443},
  };
  for (const auto& row : kRows) {
    const auto read = parse_authority(row.text, 443);
    ASSERT_TRUE(read) << row.text;
    EXPECT_EQ(*read, (Authority{row.host, row.port})) << row.text;
  }
  for (const char* text : {"",
                           ".",
                           ":443",
                           "a.example:",
                           "a.example:0",
                           "a.example:65536",
                           "a.example:+1",
                           "a.example:443:443",
                           "user@a.example",
                           "a.example/",
                           "a b",
                           "a%2eexample",
                           "[::1",
                           "::1",
                           "[::1]443",
                           "[a.example]",
                           "[fe80::1%25eth0]",
                           "a.example,b.example",
                           "\xc3\xa4.example",
                           "a.example:4 43",
                           "a.example\t"})
    EXPECT_FALSE(parse_authority(text, 443)) << text;
  EXPECT_FALSE(parse_authority(std::string(256, 'a'), 443));
  EXPECT_EQ(to_string(Authority{"::1", 443}, 443), "[::1]");
  EXPECT_EQ(to_string(Authority{"a.example", 8443}, 443), "a.example:8443");
}

TEST(Message, HeadersAreComparedWithoutCaseAndKeepTheirOrder) {
  Headers headers{{"Set-Cookie", "a=1"}, {"X-Other", "x"}, {"set-cookie", "b=2"}};
  ASSERT_NE(find_header(headers, "SET-COOKIE"), nullptr);
  EXPECT_EQ(find_header(headers, "SET-COOKIE")->value, "a=1");
  EXPECT_EQ(find_header(headers, "Cookie"), nullptr);
  remove_headers(headers, "Set-cookie");
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_EQ(headers[0].name, "X-Other");
}

}  // namespace
}  // namespace firestop::http
