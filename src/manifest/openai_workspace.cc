#include <map>
#include <set>

#include "manifest/openai.h"
#include "manifest/openai_entries.h"
#include "manifest/openai_node.h"

namespace firestop::manifest {
namespace {

using codec::child_path;
using codec::in_quotes;
using codec::item_path;

constexpr std::string_view kRoot = "/workspace";

class Workspace {
 public:
  Workspace(Reader& reader, YamlNode& node, const std::string& field, LeftOut& left_out)
      : reader_(reader), node_(node), field_(field), left_out_(left_out) {}

  void translate() {
    version();
    root();
    path_grants();
    remote_commands();
    environment();
    const auto members = accounts();
    if (auto* entries = find(node_, "entries"))
      translate_openai_entries(reader_, entries->value, child_path(field_, "entries"), members, left_out_);
  }

 private:
  void version() {
    const auto version = take(node_, "version");
    if (!version || version->value.kind == YamlNode::Kind::kInvalid) return;
    const Place place{&version->value, child_path(field_, "version")};
    if (version->value.kind != YamlNode::Kind::kScalar || version->value.text != "1" ||
        version->value.style != YamlNode::Style::kPlain)
      reader_.fault(place, "is " + describe(version->value),
                    "expected 1, the only version of the SDK's manifest that is known here");
  }

  void root() {
    const auto root = take(node_, "root");
    if (!root) return;
    const Place place{&root->value, child_path(field_, "root")};
    const std::string expected = "expected " + std::string(kRoot) + ", or no root";
    const auto path = reader_.text(place, expected.substr(9));
    if (path && *path != kRoot)
      reader_.fault(place, in_quotes(*path) + " is another root than the one that every sandbox has",
                    expected);
  }

  void path_grants() {
    const auto grants = take_either(reader_, node_, field_, "extra_path_grants", "extraPathGrants");
    if (!grants || grants->value.kind == YamlNode::Kind::kInvalid) return;
    if (grants->value.kind == YamlNode::Kind::kSequence && grants->value.items.empty()) return;
    reader_.fault(
        grants->where, child_path(field_, grants->key),
        "grants paths outside the workspace, which no document can do here",
        "expected none; what lies elsewhere is an entry with source: {bind: NAME}, and whoever runs "
        "it gives the place with --bind NAME=PATH");
  }

  // Which commands a harness may use on remote mounts. There are none of these, so it grants nothing.
  void remote_commands() {
    const auto list =
        take_either(reader_, node_, field_, "remote_mount_command_allowlist", "remoteMountCommandAllowlist");
    if (!list) return;
    const auto field = child_path(field_, list->key);
    if (reader_.texts({&list->value, field}, "a list of commands", Empty::kRefuse))
      left_out_.push_back({"", list->where, field, "is about remote mounts, which there are none of", ""});
  }

  void environment() {
    auto* environment = find(node_, "environment");
    if (!environment || !is_mapping(environment->value)) return;
    // {value: {...}} is the Python side's nesting; a variable that is called value has a text.
    auto& members = environment->value.members;
    if (members.size() == 1 && members[0].key == "value" && is_mapping(members[0].value)) {
      auto inner = std::move(members[0].value);
      if (is_also_a_variable(inner))
        reader_.fault(members[0].where, child_path(child_path(field_, "environment"), "value"),
                      "is variables to one reader, and one variable that is called value to another",
                      "expected variables directly below environment, each with its text");
      environment->value = std::move(inner);
    }
    for (auto& variable : environment->value.members)
      if (is_mapping(variable.value))
        value(variable.value, child_path(child_path(field_, "environment"), variable.key));
  }

  // Whether a mapping of variables has the keys of one variable, and more than the value.
  static bool is_also_a_variable(const YamlNode& node) {
    constexpr std::string_view kKeys[] = {"value", "type", "ephemeral", "description", "resolve"};
    return node.members.size() > 1 && node.find("value") &&
           std::all_of(node.members.begin(), node.members.end(), [&](const YamlMember& member) {
             return std::find(std::begin(kKeys), std::end(kKeys), member.key) != std::end(kKeys);
           });
  }

  // {value: TEXT}, {type: str, value: TEXT} and {value: either of them, description:, ephemeral:}, as a text.
  void value(YamlNode& node, const std::string& field) {
    const Position where = node.where;
    if (auto description = take(node, "description")) note(*description, field);
    if (auto ephemeral = take(node, "ephemeral"))
      (void)reader_.boolean({&ephemeral->value, child_path(field, "ephemeral")});
    if (auto* inner = find(node, "value"); inner && is_mapping(inner->value))
      value_of(inner->value, child_path(field, "value"));
    value_of(node, field);
    if (node.kind == YamlNode::Kind::kScalar) return;
    if (node.kind != YamlNode::Kind::kInvalid) reader_.fault(where, field, "has no value", "expected text");
    node = YamlNode{};
  }

  void value_of(YamlNode& node, const std::string& field) {
    if (const auto* type = node.find("type")) {
      if (type->value.kind != YamlNode::Kind::kScalar || type->value.text != "str") {
        reader_.fault(type->where, child_path(field, "type"),
                      "is " + describe(type->value) + ": a value that is looked up somewhere else",
                      "expected text; a secret is a credential, which never enters the sandbox");
        node = YamlNode{};
        return;
      }
    }
    (void)take(node, "type");
    for (const auto& member : node.members)
      if (member.key != "value")
        reader_.fault(member.where, child_path(field, member.key),
                      "unknown key " + in_quotes(member.key) + " in a variable", "expected text");
    auto inner = take(node, "value");
    if (!inner) return;
    auto text = std::move(inner->value);
    node = std::move(text);
  }

  void note(const YamlMember& description, const std::string& field) {
    const Place place{&description.value, child_path(field, "description")};
    if (description.value.kind == YamlNode::Kind::kNull) return;
    if (const auto text = reader_.text(place, "text", Empty::kAccept); text && !text->empty())
      left_out_.push_back({"", description.where, place.field, in_quotes(*text), ""});
  }

  // Users may be names, and groups list their users; here users list their groups.
  GroupMembers accounts() {
    GroupMembers declared;
    if (auto* users = find(node_, "users"); users && users->value.kind == YamlNode::Kind::kSequence)
      for (auto& user : users->value.items)
        if (is_text(user)) user = mapping_node("name", std::move(user));
    auto* groups = find(node_, "groups");
    if (!groups || groups->value.kind != YamlNode::Kind::kSequence) return declared;
    auto& items = groups->value.items;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!is_mapping(items[i])) continue;
      auto users = take(items[i], "users");
      const auto* name = items[i].find("name");
      if (!name || !is_text(name->value)) continue;
      auto& members = declared[name->value.text];
      if (!users) continue;
      const auto field = child_path(item_path(child_path(field_, "groups"), i), "users");
      for (const auto& user : reader_.items({&users->value, field}, "a list of declared users")) {
        const auto who = account_name(reader_, user);
        if (!who) continue;
        if (!members.insert(*who).second) {
          reader_.fault(user, in_quotes(*who) + " is there twice", "expected each user once");
          continue;
        }
        join(*who, name->value.text, user);
      }
    }
    return declared;
  }

  void join(const std::string& who, const std::string& group, const Place& place) {
    auto* users = find(node_, "users");
    if (users && users->value.kind == YamlNode::Kind::kSequence) {
      for (auto& user : users->value.items) {
        const auto* name = user.find("name");
        if (!name || name->value.text != who) continue;
        if (!find(user, "groups")) {
          YamlNode list;
          list.kind = YamlNode::Kind::kSequence;
          list.where = place.where();
          user.members.push_back({"groups", place.where(), std::move(list)});
        }
        auto& list = find(user, "groups")->value;
        if (list.kind == YamlNode::Kind::kSequence) list.items.push_back(text_node(group, place.where()));
        return;
      }
    }
    reader_.fault(place, in_quotes(who) + " is not declared in workspace.users", "expected a declared user");
  }

  Reader& reader_;
  YamlNode& node_;
  const std::string& field_;
  LeftOut& left_out_;
};

}  // namespace

bool is_text(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar && codec::type_of(node) == codec::ScalarType::kText;
}

std::optional<YamlMember> take_either(Reader& reader, YamlNode& mapping, const std::string& field,
                                      std::string_view snake, std::string_view camel) {
  auto one = take(mapping, snake), other = take(mapping, camel);
  if (!one) return other;
  if (other)
    reader.fault(
        other->where, child_path(field, camel),
        std::string(camel) + " is there beside " + std::string(snake) + ", and both say the same thing",
        "expected one of them: " + std::string(snake));
  return one;
}

std::optional<std::string> account_name(Reader& reader, const Place& place) {
  if (!is_mapping(*place.node)) return reader.text(place, "a name, or {name: NAME}");
  static constexpr std::string_view kKeys[] = {"name"};
  const Fields fields(reader, place, kKeys, "a user");
  const auto name = fields.require("name", "a name such as analyst");
  return name ? reader.text(*name, "a name such as analyst") : std::nullopt;
}

void translate_openai(Reader& reader, YamlNode& workspace, const std::string& field, LeftOut& left_out) {
  if (is_mapping(workspace)) Workspace(reader, workspace, field, left_out).translate();
}

}  // namespace firestop::manifest
