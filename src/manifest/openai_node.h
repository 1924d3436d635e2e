// Taking a YAML tree apart and putting it together in another spelling.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "codec/yaml.h"

namespace firestop::manifest {

using codec::YamlMember;
using codec::YamlNode;

inline bool is_mapping(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kMapping;
}

inline YamlNode text_node(std::string text, Position where) {
  YamlNode out;
  out.kind = YamlNode::Kind::kScalar;
  out.style = YamlNode::Style::kQuoted;
  out.where = where;
  out.text = std::move(text);
  return out;
}

inline YamlNode mapping_node(std::string key, YamlNode value) {
  YamlNode out;
  out.kind = YamlNode::Kind::kMapping;
  out.where = value.where;
  out.members.push_back({std::move(key), value.where, std::move(value)});
  return out;
}

inline YamlMember* find(YamlNode& mapping, std::string_view key) {
  const auto found = std::find_if(mapping.members.begin(), mapping.members.end(),
                                  [&](const YamlMember& member) { return member.key == key; });
  return found == mapping.members.end() ? nullptr : &*found;
}

// The member, which is no longer in the mapping.
inline std::optional<YamlMember> take(YamlNode& mapping, std::string_view key) {
  auto* member = find(mapping, key);
  if (!member) return std::nullopt;
  auto out = std::move(*member);
  mapping.members.erase(mapping.members.begin() + (member - mapping.members.data()));
  return out;
}

}  // namespace firestop::manifest
