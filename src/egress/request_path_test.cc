#include "egress/request_path.h"

#include <gtest/gtest.h>

namespace firestop::egress {
namespace {

TEST(RequestPath, HasOneForm) {
  const struct {
    const char* target;
    const char* path;
  } rows[] = {
      {"/", "/"},
      {"/v1/models?x=/../y", "/v1/models"},        // the query is no part of it
      {"/a%2Fb", "/a%2Fb"},                        // an escaped slash stays one
      {"/a%2fb", "/a%2Fb"},                        //
      {"/%61%62", "/ab"},                          // letters need no escape
      {"/%7Euser/%2D%5F%2e%2ex", "/~user/-_..x"},  // nor do -._~
      {"/V1/Models", "/V1/Models"},                // case stays
      {"/caf%c3%a9", "/caf%C3%A9"},                //
      {"/a;b=1/c", "/a;b=1/c"},                    //
      {"/a/", "/a/"},                              // an empty last component is another path
      {"/...", "/..."},                            //
      {"/a%20b", "/a%20b"},                        //
      {"/100%25", "/100%25"},                      //
      {"/x%3Fy", "/x%3Fy"},                        // a question mark of the path
      {"*", "*"},
  };
  for (const auto& row : rows) {
    const auto read = read_request_path(row.target);
    EXPECT_EQ(read.why_not, "") << row.target;
    EXPECT_EQ(read.path, row.path) << row.target;
  }
}

TEST(RequestPath, HasNoFormWhereServersDisagree) {
  for (const char* target : {"/public/../secret",
                             "/public/..",
                             "/.",
                             "/./a",
                             "/..",  // ways up
                             "/public/%2e%2e/secret",
                             "/public/%2E./secret",
                             "/public/.%2e/secret",  //
                             "/public/..;/secret",
                             "/public/..;a=b/secret",
                             "/public/.;/secret",  // Tomcat
                             "/public/..%2Fsecret",
                             "/public/%2e%2e%2fsecret",
                             "/a%2F..%2Fb",  // if escapes are undone first
                             "/public/%252e%252e/secret",
                             "/public/%25252e%25252e/x",  // if they are undone twice
                             "/public/..%20/x",
                             "/public/..%09/x",  // Windows
                             "//secret",
                             "/public//secret",
                             "/a//",  // merged or not
                             "/a\\..\\b",
                             "/a\\b",
                             "/a%5Cb",
                             "/a%5c..%5cb",
                             "/a%255Cb",  // a separator to some
                             "/a%00b",
                             "/a%2500b",  // where C strings end
                             "/a%252Fb",
                             "/a%25%32%46b",
                             "/a%25252Fb",
                             "/a%2541",
                             "/a%2525",  // an escape within an escape, whatever it is of
                             "/%c0%ae%c0%ae/x",
                             "/a%c0%afb",
                             "/%e0%80%ae/x",
                             "/%f0%80%80%ae",  // malformed UTF-8
                             "/a%",
                             "/a%2",
                             "/a%zz",
                             "/%",
                             "/a%2g",  // no escape
                             "/a b",
                             "/a\x7f",
                             "/\xc3\xa9",
                             "/a#b",  // must be escaped
                             "",
                             "a",
                             "http://example.com/",
                             "?x"}) {
    const auto read = read_request_path(target);
    EXPECT_NE(read.why_not, "") << target;
    EXPECT_EQ(read.path, "") << target;
  }
  EXPECT_NE(read_request_path("/" + std::string(8192, 'a')).why_not, "");
  EXPECT_EQ(read_request_path("/" + std::string(8191, 'a')).why_not, "");
}

TEST(RequestPath, Patterns) {
  const struct {
    const char* pattern;
    const char* path;
    bool matches;
  } rows[] = {
      {"/v1/models", "/v1/models", true},
      {"/v1/models", "/v1/models/", false},
      {"/v1/models", "/v1/Models", false},
      {"/v1/*", "/v1/models", true},
      {"/v1/*", "/v1/", true},
      {"/v1/*", "/v1", false},
      {"/v1/*", "/v1/a/b", false},
      {"/v1/*", "/v1/a%2Fb", false},  // not by an escaped slash either
      {"/v1/*%2F*", "/v1/@a%2Fb", true},
      {"/v1/a%2fb", "/v1/a%2Fb", true},
      {"/v1/**", "/v1/a/b", true},
      {"/v1/**", "/v1/a%2Fb", true},
      {"/v1/**", "/v1/", true},
      {"/v1/**", "/v1", false},
      {"/v1/**", "/v10/a", false},
      {"/**", "/", true},
      {"/**", "/a/b/c", true},
      {"/**/info/*", "/a/b/info/refs", true},
      {"/**/info/*", "/info/refs", true},
      {"/**/info/*", "/a/info", false},
      {"/a*c/*.json", "/abbc/x.json", true},
      {"/a*c/*.json", "/ab/x.json", false},
      {"/**/a/**/b", "/a/a/x/a/b", true},
      {"/**/a/**/b", "/b/a", false},
      {"/**", "*", false},
      {"/%61/b", "/a/b", true},
  };
  for (const auto& row : rows)
    EXPECT_EQ(path_matches(normal_pattern(row.pattern), row.path), row.matches)
        << row.pattern << " " << row.path;
}

// A pattern of many stars costs the lengths multiplied, not more.
TEST(RequestPath, PatternsDoNotExplode) {
  std::string pattern, path = "/" + std::string(8000, 'a');
  for (int i = 0; i < 1000; ++i) pattern += "a*";
  EXPECT_FALSE(path_matches("/" + pattern + "b", path));
  std::string deep, parts;
  for (int i = 0; i < 500; ++i) {
    deep += "/**/a";
    parts += "/a/a";
  }
  EXPECT_FALSE(path_matches(deep + "/b", parts));
}

}  // namespace
}  // namespace firestop::egress
