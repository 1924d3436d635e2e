// Every key that a manifest may have, mapping by mapping. The loader refuses all others; a test holds
// schema/manifest.schema.json to the same tables.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "manifest/manifest.h"

namespace firestop::manifest {

using Keys = std::span<const std::string_view>;

inline constexpr std::string_view kDocumentKeys[] = {
    "firestop", "name",    "kind",         "description", "rating", "idle",   "image",      "workspace",
    "run_as",   "command", "capabilities", "skills",      "limits", "egress", "credentials"};
inline constexpr std::string_view kWorkspaceKeys[] = {"entries", "environment", "users", "groups"};
inline constexpr std::string_view kGitRepoKeys[] = {"type", "repo", "host", "ref", "depth"};
inline constexpr std::string_view kFileKeys[] = {"type", "content", "permissions", "owner", "group"};
inline constexpr std::string_view kContentKeys[] = {"base64"};
inline constexpr std::string_view kDirKeys[] = {"type", "output", "max", "permissions", "owner", "group"};
inline constexpr std::string_view kLocalFileKeys[] = {"type",        "src",   "source",
                                                      "permissions", "owner", "group"};
inline constexpr std::string_view kLocalDirKeys[] = {"type",        "src",   "source",
                                                     "permissions", "owner", "group"};
inline constexpr std::string_view kMountKeys[] = {"type", "source", "read_only", "owner", "group"};
inline constexpr std::string_view kSkillKeys[] = {"src", "source"};
inline constexpr std::string_view kSourceKeys[] = {"path", "bind"};
inline constexpr std::string_view kUserKeys[] = {"name", "groups"};
inline constexpr std::string_view kGroupKeys[] = {"name"};
inline constexpr std::string_view kLimitsKeys[] = {
    "cpus",         "memory",           "disk",         "io",
    "processes",    "open_files",       "output",       "result",
    "result_files", "memory_directory", "memory_files", "network"};
inline constexpr std::string_view kNetworkKeys[] = {"bytes", "rate", "connections"};
inline constexpr std::string_view kEgressKeys[] = {
    "host",  "cidr",       "port",    "ports",     "methods",
    "paths", "protocol",   "private", "websocket", "credential",
    "git",   "plain_text", "ca",      "preset",    "placeholders_in_body"};
inline constexpr std::string_view kGitKeys[] = {"repository", "fetch", "push", "delete", "push_options"};
inline constexpr std::string_view kCredentialKeys[] = {"env",    "inject", "user",    "header",
                                                       "scheme", "query",  "key_id",  "session_token",
                                                       "prefix", "length", "on_alarm"};

Keys keys_of(EntryType type);

// The name of each mapping in the schema ("" is the document itself, else below $defs) and its keys.
struct KeyTable {
  std::string_view name;
  Keys keys;
};
std::vector<KeyTable> all_key_tables();

}  // namespace firestop::manifest
