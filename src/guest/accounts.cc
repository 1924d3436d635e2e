#include "guest/accounts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

namespace firestop::guest {
namespace {

std::string_view field(std::string_view line, int index) {
  for (; index > 0; --index) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return {};
    line.remove_prefix(colon + 1);
  }
  return line.substr(0, line.find(':'));
}

// The lines of a colon-separated file for which `keep` holds, each with its newline.
template <typename Keep>
std::string filtered(std::string_view text, Keep keep) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.empty() && keep(line)) out.append(line) += '\n';
  }
  return out;
}

template <typename Items>
bool any_named(const Items& items, std::string_view name) {
  return std::any_of(items.begin(), items.end(), [&](const auto& item) { return item.name == name; });
}

}  // namespace

std::string home_of(const channel::Account& account) {
  return "/home/" + account.name;
}

std::string passwd_with(const std::string& image, const std::vector<channel::Account>& accounts,
                        const std::string& shell) {
  std::string out = filtered(image, [&](std::string_view line) {
    return !any_named(accounts, field(line, 0)) &&
           std::none_of(accounts.begin(), accounts.end(),
                        [&](const auto& account) { return std::to_string(account.uid) == field(line, 2); });
  });
  for (const auto& account : accounts)
    out += account.name + ":x:" + std::to_string(account.uid) + ":" + std::to_string(account.gid) +
           "::" + home_of(account) + ":" + shell + "\n";
  return out;
}

std::string group_with(const std::string& image, const std::vector<channel::Account>& accounts,
                       const std::vector<channel::Group>& declared) {
  std::vector<channel::Group> groups = declared;
  for (const auto& account : accounts)
    if (std::none_of(groups.begin(), groups.end(),
                     [&](const auto& group) { return group.gid == account.gid; }))
      groups.push_back({account.name, account.gid});
  std::string out = filtered(image, [&](std::string_view line) {
    return !any_named(groups, field(line, 0)) &&
           std::none_of(groups.begin(), groups.end(),
                        [&](const auto& group) { return std::to_string(group.gid) == field(line, 2); });
  });
  for (const auto& group : groups) {
    std::string members;
    for (const auto& account : accounts)
      if (std::find(account.groups.begin(), account.groups.end(), group.gid) != account.groups.end())
        members += (members.empty() ? "" : ",") + account.name;
    out += group.name + ":x:" + std::to_string(group.gid) + ":" + members + "\n";
  }
  return out;
}

Result<void> write_accounts(const channel::Start& start, const Inside& image, const Inside& upper) {
  const std::string shell = image.exists("/bin/bash") ? "/bin/bash" : "/bin/sh";
  TRY_ASSIGN(const std::string passwd, image.read("/etc/passwd"));
  TRY_ASSIGN(const std::string group, image.read("/etc/group"));
  TRY(upper.write("/etc/passwd", passwd_with(passwd, start.accounts, shell), 0644));
  TRY(upper.write("/etc/group", group_with(group, start.accounts, start.groups), 0644));
  for (const auto& account : start.accounts)
    TRY(upper.make_directories(home_of(account).substr(1), {account.uid, account.gid}));
  return {};
}

}  // namespace firestop::guest
