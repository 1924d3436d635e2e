#include "base/diagnostic.h"

#include <gtest/gtest.h>

namespace firestop {
namespace {

TEST(Diagnostic, PointsAtTheColumnWithACaret) {
  const Diagnostic d{"f.yaml", {2, 3}, "a.b", "unknown key 'x'", "one of y, z"};
  EXPECT_EQ(render(d, "a: 1\n  x: 2\n"),
            "f.yaml:2:3: a.b: unknown key 'x'; one of y, z\n"
            "  2 |   x: 2\n"
            "    |   ^\n");
}

TEST(Diagnostic, CountsCharactersNotBytes) {
  EXPECT_EQ(render(Diagnostic{"f", {1, 3}, "", "bad", ""}, "äö!"), "f:1:3: bad\n  1 | äö!\n    |   ^\n");
}

TEST(Diagnostic, inv10_WhatWouldActOnTheTerminalIsShownAsAnEscape) {
  const struct {
    std::string text, shown;
  } kRows[] = {
      {"\x1b[2J", "\\x1B[2J"},  // a terminal's command
      {"\x7f", "\\x7F"},        // delete
      {"\xc2\x9b"
       "2J",
       "\\x9B2J"},                  // the same command in one character (C1)
      {"\xc2\x85", "\\x85"},        // a line break to some
      {"\xe2\x80\xae", "\\u202E"},  // right to left from here on
      {"\xe2\x81\xa6", "\\u2066"},  // isolates
      {"\xe2\x80\xa8", "\\u2028"},  // a line break to some
      {"\xd8\x9c", "\\u061C"},      // Arabic letter mark
      {"\xef\xbb\xbf", "\\uFEFF"},  // nothing to see
      {"\x9b", "\\x9B"},            // no UTF-8: an 8-bit terminal's command
      {"\xe2\x80", "\\xE2\\x80"},   // no UTF-8
      {"\xf8\x88\x80\x80\x80", "\\xF8\\x88\\x80\\x80\\x80"},
      {"\xc2\xa0\xe2\x82\xac", "\xc2\xa0\xe2\x82\xac"},  // harmless
  };
  for (const auto& row : kRows)
    EXPECT_EQ(render(Diagnostic{"f", {1, 1}, "", "bad", ""}, row.text),
              "f:1:1: bad\n  1 | " + row.shown + "\n    | ^\n");
  EXPECT_EQ(render(Diagnostic{"f", {1, 4}, "", "bad", ""},
                   "ä\xe2\x80\xae"
                   "b!"),
            "f:1:4: bad\n  1 | ä\\u202Eb!\n    |         ^\n")
      << "the caret stands below what it means";
}

TEST(Diagnostic, CutsLongLinesAroundTheCaret) {
  const std::string text(1000, 'x');
  const std::string out = render(Diagnostic{"f", {1, 900}, "", "bad", ""}, text);
  EXPECT_LT(out.size(), 250u);
  EXPECT_NE(out.find("^"), std::string::npos);
}

TEST(Diagnostic, WithoutAPositionThereIsOnlyTheHeadline) {
  EXPECT_EQ(render(Diagnostic{"f", {}, "a", "bad", ""}, "text"), "f: a: bad\n");
}

}  // namespace
}  // namespace firestop
