#include "base/path.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace firestop {
namespace {

TEST(RelativePath, TheNormalFormIsAccepted) {
  for (const char* path : {"a", "a/b", ".git", "a.b/..c", "ä/ö", "a b", "...", "x~", "c/d:"})
    EXPECT_EQ(why_not_relative_path(path), "") << path;
}

TEST(RelativePath, EveryOtherFormIsRefused) {
  for (const std::string& path :
       {std::string(""),        std::string("/"),    std::string("/a"),    std::string("."),
        std::string(".."),      std::string("./a"),  std::string("a/."),   std::string("a/.."),
        std::string("a/../b"),  std::string("a//b"), std::string("a/"),    std::string("~"),
        std::string("~/a"),     std::string("a\\b"), std::string("C:"),    std::string("c:/a"),
        std::string("a\0b", 3), std::string("a\nb"), std::string("a\x7f"), std::string(256, 'a'),
        std::string(5000, 'a')})
    EXPECT_NE(why_not_relative_path(path), "") << path;
}

TEST(Paths, AreTakenApart) {
  EXPECT_EQ(file_name("a/b"), "b");
  EXPECT_EQ(file_name("b"), "b");
  EXPECT_EQ(parent_path("/b"), "/");
  EXPECT_EQ(parent_path("a/b/c"), "a/b");
  EXPECT_EQ(parent_path("a"), ".");
}

TEST(OpenBeneath, RefusesToLeave) {
  const UniqueFd root(::open("/usr", O_PATH | O_DIRECTORY));
  EXPECT_TRUE(open_beneath(root.get(), "bin/env", O_RDONLY));
  EXPECT_TRUE(open_beneath(root.get(), "bin", O_RDONLY | O_DIRECTORY));
  EXPECT_FALSE(open_beneath(root.get(), "../etc/passwd", O_RDONLY));
  EXPECT_FALSE(open_beneath(root.get(), "/etc/passwd", O_RDONLY));
}

}  // namespace
}  // namespace firestop
