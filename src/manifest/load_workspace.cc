#include <algorithm>

#include "manifest/loader.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;

constexpr size_t kMostAccounts = 32;
constexpr size_t kMostEnvironment = 32u << 10;  // bytes, as execve(2) counts them

void load_environment(Loading& loading, const Place& place) {
  Reader& reader = loading.reader;
  size_t total = 0;
  for (const auto& member : reader.members(place, "a mapping of names to texts")) {
    if (const auto why = why_not_variable(member.key); !why.empty())
      reader.fault(member.key_where, member.field, in_quotes(member.key) + " " + why,
                   "expected another name");
    const auto value = reader.text(member, "text", Empty::kAccept);
    if (!value) continue;
    total += member.key.size() + value->size() + 2;
    loading.manifest.environment[member.key] = *value;
  }
  if (total > kMostEnvironment)
    reader.fault(place, "has " + std::to_string(total) + " bytes",
                 "expected at most 32KiB; put long texts into a file entry");
}

// The name of a user or group, if it is a good and a new one.
std::optional<std::string> load_account(Loading& loading, const Fields& fields) {
  Reader& reader = loading.reader;
  const auto place = fields.require("name", "a name such as analyst");
  if (!place) return std::nullopt;
  auto name = reader.text(*place, "a name such as analyst");
  if (!name) return std::nullopt;
  if (const auto why = why_not_account(*name); !why.empty()) {
    reader.fault(*place, in_quotes(*name) + " " + why, "expected a name such as analyst");
    return std::nullopt;
  }
  const Manifest& manifest = loading.manifest;
  const bool user = std::any_of(manifest.users.begin(), manifest.users.end(),
                                [&](const User& u) { return u.name == *name; });
  if (user || std::find(manifest.groups.begin(), manifest.groups.end(), *name) != manifest.groups.end()) {
    reader.fault(*place, in_quotes(*name) + " is declared twice",
                 "expected each name once; every user has a group of the same name");
    return std::nullopt;
  }
  return name;
}

void load_users(Loading& loading, const Place& place) {
  Reader& reader = loading.reader;
  for (const auto& item : reader.items(place, "a list of users, such as [{name: analyst}]", kMostAccounts)) {
    const Fields fields(reader, item, kUserKeys, "a user");
    User user;
    if (const auto groups = fields.get("groups")) {
      for (const auto& group : reader.items(*groups, "a list of declared groups", kMostAccounts)) {
        const auto name = reader.text(group, "the name of a group");
        if (!name) continue;
        if (std::find(user.groups.begin(), user.groups.end(), *name) != user.groups.end())
          reader.fault(group, in_quotes(*name) + " is there twice", "expected each group once");
        loading.groups.emplace_back(group, *name);
        user.groups.push_back(*name);
      }
    }
    if (!fields.valid()) continue;
    if (auto name = load_account(loading, fields)) {
      user.name = std::move(*name);
      loading.manifest.users.push_back(std::move(user));
    }
  }
}

void load_groups(Loading& loading, const Place& place) {
  Reader& reader = loading.reader;
  for (const auto& item :
       reader.items(place, "a list of groups, such as [{name: reviewers}]", kMostAccounts)) {
    const Fields fields(reader, item, kGroupKeys, "a group");
    if (!fields.valid()) continue;
    if (auto name = load_account(loading, fields)) loading.manifest.groups.push_back(std::move(*name));
  }
}

}  // namespace

void load_workspace(Loading& loading, const Place& place) {
  const Fields fields(loading.reader, place, kWorkspaceKeys, "workspace");
  if (!fields.valid()) return;
  if (const auto users = fields.get("users")) load_users(loading, *users);
  if (const auto groups = fields.get("groups")) load_groups(loading, *groups);
  if (const auto environment = fields.get("environment")) load_environment(loading, *environment);
  if (const auto entries = fields.get("entries")) load_entries(loading, *entries);
}

}  // namespace firestop::manifest
