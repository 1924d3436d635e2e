#include "manifest/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/file.h"
#include "manifest/canonical.h"
#include "manifest/explain.h"
#include "manifest/load.h"
#include "manifest/lock.h"

namespace firestop::manifest {
namespace {

using testing::HasSubstr;

Manifest load(const std::string& rest) {
  const auto loaded = load_text("firestop.yaml", "firestop: 1\nname: t\n" + rest);
  EXPECT_TRUE(loaded.faults.empty()) << render(loaded.faults, loaded.text);
  return loaded.manifest;
}

// Each is a manifest but for its name, with rules that could have been written by hand.
TEST(Presets, AreManifestsOfRules) {
  EXPECT_GE(all_presets().size(), 8u);
  for (const auto& preset : all_presets()) {
    const std::string name(preset.name), file = FIRESTOP_SOURCE_DIR "/presets/" + name + ".yaml";
    EXPECT_EQ(preset.text, read_file(file).value()) << name;
    const auto by_hand = load(std::string(preset.text)), by_name = load("egress: [{preset: " + name + "}]\n");
    ASSERT_FALSE(by_hand.egress.empty()) << name;
    EXPECT_EQ(canonical_json(by_hand, nullptr).value(), canonical_json(by_name, nullptr).value());
    for (const auto& rule : by_name.egress) {
      EXPECT_EQ(rule.preset, name);
      EXPECT_EQ(rule.protocol, "http");
      EXPECT_FALSE(rule.methods.empty()) << name;
      EXPECT_FALSE(rule.paths.empty()) << name;
      EXPECT_FALSE(rule.private_addresses) << name;
    }
    EXPECT_THAT(explain_text(by_name, Colour::kOff), HasSubstr("by preset"));
  }
}

TEST(Presets, TakeACredential) {
  const auto manifest = load(
      "egress: [{host: a.example.com}, {preset: openai, credential: model}]\n"
      "credentials: {model: {env: OPENAI_API_KEY, inject: bearer}}\n");
  ASSERT_EQ(manifest.egress.size(), 2u);
  EXPECT_EQ(manifest.egress[0].name, "egress[0]");
  EXPECT_EQ(manifest.egress[1].name, "egress[1].openai[0]");
  EXPECT_EQ(manifest.egress[1].credential, "model");
}

TEST(Presets, OfModelsLetTheirOwnPlaceholderIntoBodiesUnlessTheManifestSaysOtherwise) {
  for (const auto& [said, word] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", "own"}, {", placeholders_in_body: all", "all"}, {", placeholders_in_body: none", ""}})
    for (const std::string name : {"openai", "anthropic", "gemini"}) {
      const auto manifest = load("egress: [{preset: " + name + ", credential: model" + said +
                                 "}]\ncredentials: {model: {env: KEY, inject: bearer}}\n");
      for (const auto& rule : manifest.egress) EXPECT_EQ(rule.placeholders_in_body, word) << name;
    }
  for (const auto& rule : load("egress: [{preset: npm}, {preset: github}]\n").egress)
    EXPECT_EQ(rule.placeholders_in_body, "");
}

TEST(Presets, ARuleBesideThemIsNoContradiction) {
  EXPECT_EQ(load("egress: [{preset: npm}, {host: registry.npmjs.org, methods: [GET], paths: [/left-pad]}]\n")
                .egress.size(),
            2u);
}

TEST(Presets, AreWrongWithAReason) {
  for (const auto& [text, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {"egress: [{preset: nmp}]", "did you mean 'npm'"},
           {"egress: [{preset: npm}, {preset: npm}]", "'npm' is there twice"},
           {"egress: [{preset: npm, host: a.example.com}]", "unknown key 'host' in a rule with preset"},
           {"egress: [{preset: [npm]}]", "egress[0].preset"}}) {
    const auto loaded = load_text("f", std::string("firestop: 1\nname: t\n") + text + "\n");
    EXPECT_THAT(render(loaded.faults, loaded.text), HasSubstr(why)) << text;
  }
}

TEST(Presets, ALockPinsThem) {
  const auto manifest = load("egress: [{preset: npm}]\n");
  Lock lock;
  lock.recipe = "agent-base";
  lock.image_digest = std::string(64, 'a');
  const auto stale = check_lock(manifest, lock);
  ASSERT_FALSE(stale.has_value());
  EXPECT_THAT(stale.error().message, HasSubstr("preset npm: is not locked"));
  lock.presets = manifest.presets;
  EXPECT_EQ(lock.presets.at("npm"), sha256_hex(find_preset("npm")->text));
  EXPECT_TRUE(check_lock(manifest, lock).has_value());
  const auto again = parse_lock(lock.to_text(), "firestop.lock");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(*again, lock);
  lock.presets["npm"] = std::string(64, 'b');
  EXPECT_THAT(check_lock(manifest, lock).error().message, HasSubstr("has other rules"));
  EXPECT_THAT(check_lock(load(""), lock).error().message, HasSubstr("preset npm: is locked, and not"));
  for (const char* presets : {"{}", "[]", "{\"npm\":1}", "{\"npm\":\"sha256:xyz\"}",
                              "{\"N P\":\"sha256:"
                              "\"}"})
    EXPECT_FALSE(
        parse_lock(std::string("{\"firestop_lock\":1,\"image\":null,\"repositories\":{},\"presets\":") +
                       presets + "}",
                   "f")
            .has_value())
        << presets;
}

}  // namespace
}  // namespace firestop::manifest
