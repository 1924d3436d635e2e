#include "manifest/openai_entries.h"

#include <algorithm>

#include "base/path.h"

namespace firestop::manifest {
namespace {

using codec::child_path;
using codec::in_quotes;

constexpr std::string_view kRoot = "/workspace";
constexpr size_t kLongestPath = 4096;

struct Above {
  std::string path;        // "" at the top, else with "/" at its end
  bool ephemeral = false;  // whether a folder above is
};

class Entries {
 public:
  Entries(Reader& reader, const std::string& field, const GroupMembers& groups, LeftOut& left_out)
      : reader_(reader), field_(field), groups_(groups), left_out_(left_out) {}

  void translate(YamlNode& entries, const std::string& field, const Above& above) {
    for (auto& member : entries.members) {
      const auto why = why_not_relative_path(member.key);
      const bool long_path = above.path.size() + member.key.size() > kLongestPath;
      if (!above.path.empty() && (!why.empty() || long_path)) {
        reader_.fault(member.where, child_path(field, member.key),
                      long_path ? "the path is too long" : std::string(why),
                      "expected a path relative to the folder that it lies in");
        continue;
      }
      const std::string inner = child_path(field_, above.path + member.key);
      const bool deeper = why.empty();  // else the loader says it, of this entry alone
      std::optional<YamlMember> children;
      bool ephemeral = above.ephemeral;
      if (is_mapping(member.value)) {
        if (is_type(member.value, "dir")) children = take(member.value, "children");
        ephemeral = translate_entry(member, inner, above.ephemeral);
      }
      const std::string name = std::move(member.key);
      member.key = above.path + name;
      if (!mount_path_.empty()) member.key = std::exchange(mount_path_, {});
      out_.push_back(std::move(member));
      if (!children || !deeper || children->value.kind == YamlNode::Kind::kInvalid) continue;
      const Place place{&children->value, child_path(inner, "children")};
      if (is_mapping(children->value))
        translate(children->value, place.field, {above.path + name + "/", ephemeral});
      else
        (void)reader_.members(place, "a mapping of paths to entries");
    }
  }

  std::vector<YamlMember> take_entries() { return std::move(out_); }

 private:
  static bool is_type(const YamlNode& entry, std::string_view type) {
    const auto* member = entry.find("type");
    return member && is_text(member->value) && member->value.text == type;
  }

  // Whether what lies below is ephemeral.
  bool translate_entry(YamlMember& member, const std::string& field, bool ephemeral_above) {
    YamlNode& entry = member.value;
    if (is_remote(entry, field)) {
      entry = YamlNode{};
      return ephemeral_above;
    }
    const bool mount = is_type(entry, "mount"), repository = is_type(entry, "git_repo");
    const bool file = is_type(entry, "file") || is_type(entry, "local_file");
    // What the SDK itself writes has every field, absent ones as null.
    const bool dumped = find(entry, "ephemeral") || find(entry, "is_dir");

    if (const auto description = take(entry, "description")) describe_entry(*description, field);
    bool ephemeral = ephemeral_above;
    if (const auto value = take(entry, "ephemeral")) {
      const Place place{&value->value, child_path(field, "ephemeral")};
      const auto is = reader_.boolean(place);
      ephemeral = ephemeral || is.value_or(false);
      if (mount && is && !*is)
        reader_.fault(place, "is false, but what is mounted is kept by nothing", "expected true");
    }
    if (ephemeral && (repository || comes_back(entry)))
      reader_.fault(member.where, field,
                    repository ? "is ephemeral, or lies in what is, and a repository comes back as a branch"
                               : "is ephemeral, or lies in what is, and comes back with output: true",
                    "expected an entry that is not ephemeral");
    if (const auto value = take(entry, "is_dir")) {
      const Place place{&value->value, child_path(field, "is_dir")};
      if (const auto is = reader_.boolean(place); is && *is == file)
        reader_.fault(place, file ? "is true for a file" : "is false for a folder",
                      file ? "expected false" : "expected true");
    }
    permissions(entry, field, mount || repository, file ? IsFolder::kNo : IsFolder::kYes);
    group(entry, field, dumped);
    if (repository) subpath(entry, field);
    if (is_type(entry, "file")) content(entry, field);
    if (mount) translate_mount(member, field);
    return ephemeral;
  }

  bool is_remote(const YamlNode& entry, const std::string& field) {
    for (const auto type :
         {"s3_mount", "gcs_mount", "r2_mount", "azure_blob_mount", "box_mount", "s3_files_mount"}) {
      if (!is_type(entry, type)) continue;
      reader_.fault(entry.find("type")->value.where, child_path(field, "type"),
                    "is " + in_quotes(type) + ": a remote store, which a sandbox cannot mount",
                    "expected type: mount with source: {bind: NAME}, which is a copy of a folder");
      return true;
    }
    return false;
  }

  static bool comes_back(const YamlNode& entry) {
    const auto* output = entry.find("output");
    return output && output->value.text == "true";
  }

  void describe_entry(const YamlMember& description, const std::string& field) {
    if (description.value.kind == YamlNode::Kind::kNull) return;
    const Place place{&description.value, child_path(field, "description")};
    if (const auto text = reader_.text(place, "text", Empty::kAccept); text && !text->empty())
      left_out_.push_back({"", description.where, place.field, in_quotes(*text), ""});
  }

  void permissions(YamlNode& entry, const std::string& field, bool of_its_own, IsFolder folder) {
    auto* member = find(entry, "permissions");
    if (!member) return;
    const bool mapping = is_mapping(member->value);
    translate_openai_permissions(reader_, member->value, child_path(field, "permissions"), folder);
    // The SDK writes its default beside a repository and a mount too, where it says nothing.
    if (of_its_own && mapping && member->value.text == "0755") (void)take(entry, "permissions");
  }

  // {name: NAME} and {name: NAME, users: [...]}, as a name. The users are those that the group was declared
  // with.
  void group(YamlNode& entry, const std::string& field, bool dumped) {
    auto* member = find(entry, "group");
    if (!member) return;
    if (member->value.kind == YamlNode::Kind::kNull && dumped) {
      (void)take(entry, "group");
      return;
    }
    if (!is_mapping(member->value)) return;
    static constexpr std::string_view kKeys[] = {"name", "users"};
    const Place place{&member->value, child_path(field, "group")};
    const Fields fields(reader_, place, kKeys, "a group");
    const auto name = fields.require("name", "a declared group");
    std::optional<std::string> text = name ? reader_.text(*name, "a declared group") : std::nullopt;
    if (const auto users = fields.get("users"); users && text) {
      std::set<std::string> members;
      for (const auto& user : reader_.items(*users, "a list of users"))
        if (auto who = account_name(reader_, user)) members.insert(std::move(*who));
      if (const auto declared = groups_.find(*text); declared != groups_.end() && declared->second != members)
        reader_.fault(*users, "are others than those of the group in workspace.groups",
                      "expected the same users");
    }
    auto node = text ? text_node(std::move(*text), name->where()) : YamlNode{};
    member->value = std::move(node);
  }

  void subpath(YamlNode& entry, const std::string& field) {
    const auto part = take(entry, "subpath");
    if (!part || part->value.kind == YamlNode::Kind::kNull) return;
    const Place place{&part->value, child_path(field, "subpath")};
    const auto text = reader_.text(place, "text", Empty::kAccept);
    if (text && !text->empty())
      reader_.fault(place, "takes a part of a repository, and a working copy is of the whole",
                    "expected no subpath; the part lies below the entry's path");
  }

  // {type: base64, data: TEXT}, as {base64: TEXT}
  void content(YamlNode& entry, const std::string& field) {
    auto* member = find(entry, "content");
    if (!member || !is_mapping(member->value)) return;
    const auto type = take(member->value, "type");
    if (!type) return;
    const auto inner = child_path(field, "content");
    static constexpr std::string_view kTypes[] = {"base64"};
    if (!reader_.word({&type->value, child_path(inner, "type")}, kTypes)) {
      member->value = YamlNode{};
      return;
    }
    if (auto* data = find(member->value, "data"); data && !find(member->value, "base64"))
      data->key = "base64";
  }

  void translate_mount(YamlMember& member, const std::string& field) {
    YamlNode& entry = member.value;
    if (auto read_only = take_either(reader_, entry, field, "read_only", "readOnly")) {
      read_only->key = "read_only";
      entry.members.push_back(std::move(*read_only));
    }
    if (const auto strategy = take_either(reader_, entry, field, "mount_strategy", "mountStrategy"))
      bind_strategy(entry, *strategy, field);
    const auto path = take_either(reader_, entry, field, "mount_path", "mountPath");
    if (!path || path->value.kind == YamlNode::Kind::kNull) return;
    const Place place{&path->value, child_path(field, path->key)};
    const std::string expected =
        "expected a path relative to the workspace, or one below " + std::string(kRoot);
    auto text = reader_.text(place, expected.substr(9));
    if (!text) return;
    const std::string given = *text;
    if (text->starts_with('/')) {
      if (!text->starts_with(std::string(kRoot) + "/")) {
        reader_.fault(place, in_quotes(given) + (given == kRoot ? " is" : " is outside") + " the workspace",
                      expected);
        return;
      }
      text->erase(0, kRoot.size() + 1);
    }
    if (const auto why = why_not_relative_path(*text); !why.empty())
      reader_.fault(place, in_quotes(given) + ": " + std::string(why), expected);
    else
      mount_path_ = std::move(*text), member.where = place.where();
  }

  // With the strategy local_bind, the source is a path of the host.
  void bind_strategy(YamlNode& entry, const YamlMember& strategy, const std::string& field) {
    if (strategy.value.kind == YamlNode::Kind::kInvalid) return;
    static constexpr std::string_view kKeys[] = {"type"};
    static constexpr std::string_view kTypes[] = {"local_bind"};
    const Place place{&strategy.value, child_path(field, strategy.key)};
    const auto* type = is_mapping(strategy.value) ? strategy.value.find("type") : nullptr;
    if (!type || !is_text(type->value) || type->value.text != kTypes[0]) {
      reader_.fault(place, "is not local_bind: a sandbox mounts copies of folders and nothing else",
                    "expected none, or {type: local_bind}");
      return;
    }
    const Fields fields(reader_, place, kKeys, "a mount strategy");
    if (auto* source = find(entry, "source"); source && is_text(source->value)) {
      auto path = mapping_node("path", std::move(source->value));
      source->value = std::move(path);
    }
  }

  Reader& reader_;
  const std::string& field_;  // of the entries
  const GroupMembers& groups_;
  LeftOut& left_out_;
  std::vector<YamlMember> out_;
  std::string mount_path_;  // of the entry at hand, if it says one
};

}  // namespace

void translate_openai_entries(Reader& reader, YamlNode& entries, const std::string& field,
                              const GroupMembers& groups, LeftOut& left_out) {
  if (!is_mapping(entries)) return;
  Entries translation(reader, field, groups, left_out);
  translation.translate(entries, field, {});
  entries.members = translation.take_entries();
}

}  // namespace firestop::manifest
