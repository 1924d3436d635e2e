// The schema that editors use and the loader must not drift apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "codec/json.h"
#include "manifest/explain_facts.h"
#include "manifest/keys.h"

namespace firestop::manifest {
namespace {

codec::Json schema() {
  auto text = read_file(FIRESTOP_SOURCE_DIR "/schema/manifest.schema.json");
  auto json = text ? codec::parse_json(*text) : fail("test", "no schema");
  EXPECT_TRUE(json) << (json ? "" : json.error().to_string());
  return json ? std::move(*json) : codec::Json();
}

const codec::Json* part(const codec::Json& root, std::string_view name) {
  if (name.empty()) return &root;
  const auto* defs = root.find("$defs");
  return defs ? defs->find(name) : nullptr;
}

TEST(Schema, HasTheKeysOfTheLoaderAndNoOthers) {
  const auto root = schema();
  for (const auto& [name, keys] : all_key_tables()) {
    const auto* mapping = part(root, name);
    ASSERT_NE(mapping, nullptr) << name;
    const auto* properties = mapping->find("properties");
    ASSERT_NE(properties, nullptr) << name;
    std::vector<std::string> ours(keys.begin(), keys.end()), theirs;
    for (const auto& [key, value] : *properties->as_object()) theirs.push_back(key);
    EXPECT_THAT(theirs, testing::UnorderedElementsAreArray(ours)) << name;
  }
}

// Every mapping with properties is closed, and each of them is one of the loader's tables.
TEST(Schema, IsClosedEverywhere) {
  const auto root = schema();
  size_t closed = 0;
  const auto walk = [&](const auto& self, const codec::Json& value) -> void {
    if (const auto* object = value.as_object()) {
      if (const auto* properties = value.find("properties");
          properties && properties->as_object() && value.find("additionalProperties")) {
        ++closed;
        EXPECT_EQ(*value.find("additionalProperties"), codec::Json(false)) << codec::write_json(value);
      } else {
        EXPECT_FALSE(object->contains("properties") && !object->contains("additionalProperties"))
            << codec::write_json(value);
      }
      for (const auto& [key, member] : *object) self(self, member);
    } else if (const auto* array = value.as_array()) {
      for (const auto& item : *array) self(self, item);
    }
  };
  walk(walk, root);
  EXPECT_EQ(closed, all_key_tables().size());
}

TEST(Schema, HasTheWordsOfTheLoader) {
  const auto root = schema();
  std::vector<std::string> capabilities;
  for (const auto& word :
       *root.find("properties")->find("capabilities")->find("items")->find("enum")->as_array())
    capabilities.push_back(*word.as_string());
  std::vector<std::string> ours;
  for (const auto capability : kAllCapabilities) ours.emplace_back(to_string(capability));
  EXPECT_EQ(capabilities, ours);
  for (const auto type : {EntryType::kGitRepo, EntryType::kFile, EntryType::kDir, EntryType::kLocalFile,
                          EntryType::kLocalDir, EntryType::kMount}) {
    const auto* entry = part(root, to_string(type));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->find("properties")->find("type")->string_or("const", ""), to_string(type));
  }
}

// The defaults that the schema names are those of the code.
TEST(Schema, HasTheDefaultsOfTheLoader) {
  const auto root = schema();
  const auto* limits = part(root, "limits")->find("properties");
  for (const auto& cap : caps_of(Manifest{})) {
    const auto* property = cap.field.starts_with("limits.") ? limits->find(cap.field.substr(7))
                                                            : root.find("properties")->find(cap.field);
    ASSERT_NE(property, nullptr) << cap.field;
    const auto* value = property->find("default");
    ASSERT_EQ(value == nullptr, cap.value.is_null()) << cap.field;
    if (!value) continue;
    if (const auto* text = value->as_string())
      EXPECT_EQ(*text, cap.text) << cap.field;
    else
      EXPECT_EQ(codec::write_json(*value), cap.text) << cap.field;
  }
}

}  // namespace
}  // namespace firestop::manifest
