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

TEST(Diagnostic, CountsCharactersNotBytesAndHidesControls) {
  const Diagnostic d{"f", {1, 4}, "", "bad", ""};
  EXPECT_EQ(render(d, "äö\x1b!"), "f:1:4: bad\n  1 | äö?!\n    |    ^\n");
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
