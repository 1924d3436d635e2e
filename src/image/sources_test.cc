#include "image/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace firestop::image {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Sources, LinesOfTheSuiteOnly) {
  EXPECT_EQ(
      debian_lines("deb http://deb.debian.org/debian bookworm main\n"
                   "# deb http://deb.debian.org/debian bookworm contrib\n"
                   "deb-src http://deb.debian.org/debian bookworm main\n"
                   "deb [arch=amd64 signed-by=/k] http://mirror.example/debian bookworm-updates main # why\n"
                   "deb http://security.debian.org/debian-security bookworm-security main\n"
                   "deb http://deb.debian.org/debian trixie main\n"
                   "deb http://deb.debian.org/debian bookworm-backports main\n"
                   "deb https://packages.example.com/apt bookworm main\n"
                   "deb [broken http://deb.debian.org/debian bookworm main\n",
                   "bookworm"),
      "deb http://deb.debian.org/debian bookworm main\n"
      "deb [arch=amd64 signed-by=/k] http://mirror.example/debian bookworm-updates main \n"
      "deb http://security.debian.org/debian-security bookworm-security main\n");
}

TEST(Sources, StanzasOfTheSuiteOnly) {
  const std::string ours =
      "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm bookworm-updates\n";
  const std::string folded =
      "types: deb\nURIs:\n http://mirror/debian\nsuites:\n bookworm-security\nComponents: main\n";
  EXPECT_EQ(debian_stanzas("# head\n" + ours + "\n\n" + folded, "bookworm"), ours + "\n" + folded + "\n");
  EXPECT_EQ(debian_stanzas(ours + "Enabled: no\n", "bookworm"), "");
  EXPECT_EQ(debian_stanzas(ours, "trixie"), "");
  EXPECT_EQ(debian_stanzas("Types: deb-src\nURIs: http://x/debian\nSuites: bookworm\n", "bookworm"), "");
  EXPECT_EQ(debian_stanzas("Types: deb\nURIs: https://x.example/apt\nSuites: bookworm\n", "bookworm"), "");
}

TEST(Sources, OrderOfWhereTheyComeFrom) {
  std::string folder = ::testing::TempDir() + "aptXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  unsetenv("FIRESTOP_APT_SOURCES");
  EXPECT_THAT(find_sources("bookworm", folder)->list,
              HasSubstr("http://deb.debian.org/debian bookworm main"));

  ASSERT_TRUE(make_directories(folder + "/sources.list.d"));
  ASSERT_TRUE(write_file_atomic(folder + "/sources.list", "deb http://near/debian bookworm main\n"));
  ASSERT_TRUE(write_file_atomic(folder + "/sources.list.d/a.sources",
                                "Types: deb\nURIs: http://far/debian\nSuites: bookworm\n"));
  ASSERT_TRUE(
      write_file_atomic(folder + "/sources.list.d/a.disabled", "deb http://off/debian bookworm main\n"));
  const auto own = find_sources("bookworm", folder);
  EXPECT_EQ(own->list, "deb http://near/debian bookworm main\n");
  EXPECT_THAT(own->stanzas, HasSubstr("http://far/debian"));

  const std::string named = folder + "/mine.list";
  ASSERT_TRUE(write_file_atomic(named, "deb http://mine/any bookworm main\n"));
  ASSERT_EQ(setenv("FIRESTOP_APT_SOURCES", named.c_str(), 1), 0);
  EXPECT_EQ(find_sources("bookworm", folder)->list, "deb http://mine/any bookworm main\n");
  ASSERT_EQ(setenv("FIRESTOP_APT_SOURCES", "/does/not/exist", 1), 0);
  EXPECT_FALSE(find_sources("bookworm", folder).has_value());
  unsetenv("FIRESTOP_APT_SOURCES");
  ASSERT_TRUE(remove_tree(folder));
}

}  // namespace
}  // namespace firestop::image
