#include "image/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace firestop::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Recipe, ReadsAllKeys) {
  const auto recipe = parse_recipe(
      "# a comment\n\nsuite bookworm  # behind a line too\nkernel linux-image-cloud-amd64\n"
      "packages git perl\r\n\tpackages  g++ git\nremove /usr/share/man/* /x\nkeep /usr/share/man/man1/*",
      "demo", "f");
  ASSERT_TRUE(recipe.has_value()) << recipe.error().message;
  EXPECT_EQ(recipe->name, "demo");
  EXPECT_EQ(recipe->suite, "bookworm");
  EXPECT_EQ(recipe->kernel_package, "linux-image-cloud-amd64");
  EXPECT_THAT(recipe->packages, ElementsAre("g++", "git", "perl"));  // sorted, once
  EXPECT_THAT(recipe->remove, ElementsAre("/usr/share/man/*", "/x"));
  EXPECT_THAT(recipe->keep, ElementsAre("/usr/share/man/man1/*"));
}

TEST(Recipe, CanonicalFormHasTheContentOnly) {
  const auto of = [](const std::string& text) {
    return parse_recipe("suite s\nkernel kk\n" + text, "n", "f").value().canonical();
  };
  EXPECT_EQ(of("packages aa bb"), of("# x\npackages bb\npackages aa"));
  EXPECT_NE(of("packages aa"), of("packages aa bb"));
  EXPECT_NE(of("remove /a"), of("keep /a"));
}

TEST(Recipe, RefusesWithTheLine) {
  const struct {
    const char* text;
    const char* expected;
  } rows[] = {
      {"suite a\nkernel kk\npackage git", "f:3: unknown key 'package'"},
      {"suite a\nsuite b", "f:2: a second 'suite'"},
      {"kernel kk\n\nkernel kk", "f:3: a second 'kernel'"},
      {"suite", "f:1: 'suite' needs a value"},
      {"suite a b", "f:1: 'suite' needs one plain name"},
      {"suite ../etc", "f:1: 'suite' needs one plain name"},
      {"packages --option", "f:1: '--option' cannot stand behind 'packages'"},  // would be an option of apt
      {"packages a;b", "f:1:"},
      {"packages a,b", "f:1:"},
      {"packages Git", "f:1:"},
      {"packages git=1.0", "f:1:"},
      {"remove usr/share", "f:1:"},
      {"remove /a\x01", "f:1:"},
      {"kernel kk", "the line 'suite' is missing"},
      {"suite a", "the line 'kernel' is missing"},
  };
  for (const auto& [text, expected] : rows) {
    const auto recipe = parse_recipe(text, "n", "f");
    ASSERT_FALSE(recipe.has_value()) << text;
    EXPECT_THAT(recipe.error().message, HasSubstr(expected)) << text;
    EXPECT_EQ(recipe.error().code, "image.bad_recipe");
  }
}

TEST(Recipe, NamesOfImages) {
  for (const char* good : {"agent-base", "a", "a1"}) EXPECT_TRUE(valid_image_name(good)) << good;
  for (const char* bad : {"", "A", "1a", "-a", "a/b", "..", "a.b", "a b"})
    EXPECT_FALSE(valid_image_name(bad)) << bad;
  EXPECT_FALSE(valid_image_name(std::string(65, 'a')));
  EXPECT_EQ(load_recipe("../etc").error().code, "image.bad_name");
  EXPECT_EQ(load_recipe("oci:debian@sha256:00").error().code, "image.unsupported");
}

TEST(Recipe, TheOnesThatShipAreValid) {
  ASSERT_EQ(setenv("FIRESTOP_IMAGES", FIRESTOP_SOURCE_DIR "/images", 1), 0);
  EXPECT_THAT(recipe_names(), ::testing::Contains("agent-base"));
  for (const std::string& name : recipe_names()) {
    const auto recipe = load_recipe(name);
    EXPECT_TRUE(recipe.has_value()) << recipe.error().message;
  }
  const auto missing = load_recipe("no-such-image");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, "image.unknown");
  EXPECT_THAT(missing.error().hint, HasSubstr("agent-base"));
  unsetenv("FIRESTOP_IMAGES");
}

}  // namespace
}  // namespace firestop::image
