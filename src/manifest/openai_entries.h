// The entries of the SDK's manifest, and what they share with the rest of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "manifest/openai.h"
#include "manifest/openai_node.h"

namespace firestop::manifest {

// Declared groups and their users.
using GroupMembers = std::map<std::string, std::set<std::string>>;

bool is_text(const YamlNode& node);
// The member under either spelling; a fault that names both if both are there.
std::optional<YamlMember> take_either(Reader& reader, YamlNode& mapping, const std::string& field,
                                      std::string_view snake, std::string_view camel);
// NAME or {name: NAME}.
std::optional<std::string> account_name(Reader& reader, const Place& place);

void translate_openai_entries(Reader& reader, YamlNode& entries, const std::string& field,
                              const GroupMembers& groups, LeftOut& left_out);

// Permissions as the SDK has them: a number, rwxr-x--- with or without the letter of the type, or a mapping
// of owner, group and other. In place, as octal in quotes; other spellings stay for the loader.
enum class IsFolder { kNo, kYes };
void translate_openai_permissions(Reader& reader, YamlNode& node, const std::string& field, IsFolder folder);

}  // namespace firestop::manifest
