#include "manifest/load.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "manifest/loader.h"
#include "manifest/openai.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;
using std::chrono::milliseconds;

constexpr milliseconds kShortest = std::chrono::seconds(1), kLongest = std::chrono::hours(7 * 24);

void load_identity(Loading& loading, const Fields& fields) {
  Reader& reader = loading.reader;
  Manifest& manifest = loading.manifest;
  if (const auto place = fields.require("firestop", "the format's version: firestop: 1")) {
    const auto& node = *place->node;
    const bool scalar = node.kind == codec::YamlNode::Kind::kScalar;
    if (node.kind != codec::YamlNode::Kind::kInvalid &&
        !(scalar && node.style == codec::YamlNode::Style::kPlain && node.text == "1"))
      reader.fault(*place, "is " + describe(node), "expected the number 1, the only version that there is");
  }
  if (const auto place = fields.require("name", "a name such as fix-tests")) {
    if (const auto name = reader.text(*place, "a name")) {
      if (const auto why = why_not_run_name(*name); !why.empty())
        reader.fault(*place, in_quotes(*name) + " " + why, "expected a name such as fix-tests");
      manifest.name = *name;
    }
  }
  if (const auto place = fields.get("description")) {
    if (auto text = reader.text(*place, "text", Empty::kAccept)) {
      if (text->size() > 4096) reader.fault(*place, "is longer than 4096 bytes", "expected a short text");
      manifest.description = std::move(*text);
    }
  }
  if (const auto place = fields.get("kind")) {
    constexpr std::string_view kKinds[] = {"run", "verdict"};
    if (const auto kind = reader.word(*place, kKinds))
      manifest.kind = *kind == 0 ? Kind::kRun : Kind::kVerdict;
  }
}

void load_times(Loading& loading, const Fields& fields) {
  Reader& reader = loading.reader;
  Manifest& manifest = loading.manifest;
  bool rating_known = true;
  if (const auto place = fields.get("rating")) {
    const auto rating = reader.duration(*place, kShortest, kLongest);
    rating_known = rating.has_value();
    if (rating) manifest.rating = *rating;
  }
  if (const auto place = fields.get("idle")) {
    manifest.idle = reader.duration(*place, kShortest, kLongest);
    if (manifest.idle && rating_known && *manifest.idle > manifest.rating)
      reader.fault(*place, "is longer than the rating",
                   "expected at most the rating, which ends the run in any case");
  }
}

void load_image(Loading& loading, const Fields& fields) {
  loading.manifest.image.recipe = "agent-base";
  const auto place = fields.get("image");
  if (!place) return;
  constexpr std::string_view kExpected =
      "the name of a recipe, such as agent-base, or oci:NAME@sha256:DIGEST";
  const auto image = loading.reader.text(*place, kExpected);
  if (!image) return;
  if (const auto why = why_not_image(*image); !why.empty())
    loading.reader.fault(*place, in_quotes(*image) + " " + why, "expected " + std::string(kExpected));
  else if (image->starts_with("oci:"))
    loading.manifest.image = {"", image->substr(4)};
  else
    loading.manifest.image.recipe = *image;
}

void load_command(Loading& loading, const Fields& fields) {
  Reader& reader = loading.reader;
  const auto place = fields.get("command");
  if (!place) return;
  constexpr std::string_view kExpected = "a list of words, such as [make, test]";
  if (place->node->kind == codec::YamlNode::Kind::kScalar) {
    reader.fault(*place, "is " + describe(*place->node),
                 "expected " + std::string(kExpected) + "; for a shell's line: [sh, -c, \"...\"]");
    return;
  }
  auto words = reader.texts(*place, kExpected, Empty::kAccept);
  if (!words) return;
  size_t bytes = 0;
  for (const auto& word : *words) bytes += word.size() + 1;
  if (words->size() > 1024 || bytes > (96u << 10))
    reader.fault(*place, "is too long", "expected at most 1024 words and 96KiB together");
  if (!words->empty() && words->front().empty())
    reader.fault({&place->node->items[0], codec::item_path(place->field, 0)}, "is empty",
                 "expected a program");
  loading.manifest.command = std::move(*words);
}

void load_capabilities(Loading& loading, const Fields& fields) {
  Reader& reader = loading.reader;
  const auto place = fields.get("capabilities");
  if (!place) return;
  constexpr std::string_view kNames[] = {"shell", "filesystem", "skills", "memory", "compaction"};
  for (const auto& item : reader.items(*place, "a list of capabilities: " + listed(kNames))) {
    const auto index = reader.word(item, kNames);
    if (index && !loading.manifest.capabilities.insert(static_cast<Capability>(*index)).second)
      reader.fault(item, in_quotes(kNames[*index]) + " is there twice", "expected each capability once");
  }
}

void load_run_as(Loading& loading, const Fields& fields) {
  Reader& reader = loading.reader;
  Manifest& manifest = loading.manifest;
  const bool declared = !manifest.users.empty();
  if (!declared) manifest.users.push_back({"agent", {}});
  manifest.run_as = manifest.users.front().name;
  if (const auto place = fields.get("run_as")) {
    if (const auto name = reader.text(*place, "the name of an account")) {
      loading.accounts.emplace_back(*place, *name);
      manifest.run_as = *name;
    }
  } else if (manifest.users.size() > 1) {
    reader.fault(fields.key_position("workspace"), "run_as",
                 "is missing, and workspace.users declares several accounts",
                 "expected the one that the command runs as");
  }
}

// Names that were used against names that are declared.
void check_references(Loading& loading) {
  const Manifest& manifest = loading.manifest;
  std::vector<std::string_view> users, groups, credentials;
  for (const auto& user : manifest.users) users.push_back(user.name);
  groups.assign(manifest.groups.begin(), manifest.groups.end());
  for (const auto& credential : manifest.credentials) credentials.push_back(credential.name);

  const auto check = [&](const auto& used, const std::vector<std::string_view>& declared,
                         const std::string& what) {
    for (const auto& [place, name] : used) {
      if (std::find(declared.begin(), declared.end(), name) != declared.end()) continue;
      const auto near = closest(name, declared);
      loading.reader.fault(place, in_quotes(name) + " is not declared in " + what,
                           !near.empty()      ? "did you mean '" + std::string(near) + "'?"
                           : declared.empty() ? "expected a name that is declared there"
                                              : "expected " + listed(declared));
    }
  };
  check(loading.accounts, users, "workspace.users");
  check(loading.credentials_used, credentials, "credentials");
  // Every account has a group of its own name.
  groups.insert(groups.end(), users.begin(), users.end());
  check(loading.groups, groups, "workspace.groups");

  for (const auto& credential : manifest.credentials) {
    const auto uses = [&](const auto& use) { return use.second == credential.name; };
    if (std::none_of(loading.credentials_used.begin(), loading.credentials_used.end(), uses))
      loading.reader.fault(credential.where, codec::child_path("credentials", credential.name),
                           "is used by no rule of egress",
                           "expected a rule with credential: " + credential.name + ", or no such credential");
  }
}

void check_kind(Loading& loading, const Fields& fields) {
  const Manifest& manifest = loading.manifest;
  if (manifest.kind != Kind::kVerdict) return;
  const auto refuse = [&](Position where, std::string field, std::string wrong) {
    loading.reader.fault(where, std::move(field), std::move(wrong),
                         "expected none: all that leaves a verdict run is its verdict");
  };
  for (const auto& credential : manifest.credentials)
    refuse(credential.where, codec::child_path("credentials", credential.name),
           "is a credential in a manifest of kind verdict");
  for (const auto& entry : manifest.entries)
    if (entry.output)
      refuse(entry.where, codec::child_path("workspace.entries", entry.path),
             "is an output in a manifest of kind verdict");
  for (const auto capability : {Capability::kMemory, Capability::kCompaction})
    if (manifest.capabilities.contains(capability))
      refuse(fields.key_position("capabilities"), "capabilities",
             std::string("grants ") + to_string(capability) + " in a manifest of kind verdict");
}

void note_declared(Manifest& manifest, const codec::YamlNode& root) {
  for (const auto& member : root.members) {
    manifest.declared.insert(member.key);
    if (member.key != "limits") continue;
    for (const auto& limit : member.value.members) {
      manifest.declared.insert("limits." + limit.key);
      if (limit.key != "network") continue;
      for (const auto& network : limit.value.members)
        manifest.declared.insert("limits.network." + network.key);
    }
  }
}

std::string folder_of(const std::string& file) {
  std::error_code error;
  auto path = std::filesystem::absolute(file, error).parent_path();
  if (error) return ".";
  auto real = std::filesystem::canonical(path, error);
  return error ? path.lexically_normal().string() : real.string();
}

}  // namespace

Loaded load_text(const std::string& file, std::string_view text) {
  LeftOut left_out;
  return load_document(file, text, codec::parse_yaml(text), left_out);
}

Loaded load_document(const std::string& file, std::string_view text, codec::YamlDocument document,
                     LeftOut& left_out) {
  Loaded out;
  out.text = text;
  Manifest& manifest = out.manifest;
  manifest.file = file;
  manifest.folder = folder_of(file);

  Reader reader(file);
  for (auto& fault : document.faults)
    reader.fault(fault.where, std::move(fault.field), std::move(fault.wrong), std::move(fault.expected));
  if (document.root.kind != codec::YamlNode::Kind::kInvalid) {
    const Place root{&document.root, ""};
    if (document.root.kind == codec::YamlNode::Kind::kMapping) {
      auto folder = open_file(manifest.folder, O_PATH | O_DIRECTORY);
      Loading loading{reader, manifest, folder ? std::move(*folder) : UniqueFd(), {}, {}, {}};
      const Fields fields(reader, root, kDocumentKeys, "a manifest");
      note_declared(manifest, document.root);
      for (auto& member : document.root.members)
        if (member.key == "workspace") translate_openai(reader, member.value, member.key, left_out);
      load_identity(loading, fields);
      load_times(loading, fields);
      load_image(loading, fields);
      load_command(loading, fields);
      load_capabilities(loading, fields);
      load_skills(loading, fields);
      if (const auto place = fields.get("limits")) load_limits(loading, *place);
      if (const auto place = fields.get("workspace")) load_workspace(loading, *place);
      load_run_as(loading, fields);
      if (const auto place = fields.get("egress")) load_egress(loading, *place);
      if (const auto place = fields.get("credentials")) load_credentials(loading, *place);
      check_references(loading);
      check_kind(loading, fields);
    } else {
      reader.fault(root, "the document is " + describe(document.root),
                   "expected a mapping that begins with firestop: 1");
    }
  }
  out.faults = reader.take_faults();
  return out;
}

Result<Loaded> load_file(const std::string& file) {
  // One byte more than the reader takes, so that the fault for its size comes from there.
  auto text = read_file(file, (1u << 20) + 4096);
  if (!text) {
    auto error = std::move(text).error();
    return fail("manifest.unreadable", "cannot read the manifest: " + error.message,
                error.sys_errno == ENOENT ? "write one with: firestop init" : error.hint);
  }
  return load_text(file, *text);
}

}  // namespace firestop::manifest
