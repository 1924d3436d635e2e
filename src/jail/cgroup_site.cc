#include "jail/cgroup_site.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/path.h"

namespace firestop::jail {
namespace {

constexpr uint64_t kFileLimit = 1u << 20;
constexpr int kMostAncestors = 128;  // of a process: ids may be used again while we look
constexpr const char* kScope = "systemd-run --user --scope -p Delegate=yes firestop ...";
constexpr const char* kRootScope = "systemd-run --scope -p Delegate=yes firestop ...";

std::string text_of(const std::string& path) {
  return read_file(path, kFileLimit).value_or("");
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const size_t begin = text.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    words.emplace_back(text.substr(0, text.find_first_of(" \n")));
    text.remove_prefix(words.back().size());
  }
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool writable(const std::string& path) {
  return ::access(path.c_str(), W_OK) == 0;
}

// Our group in the hierarchy of this controller of version 1, or of version 2 for "". Nothing when there is
// none, or when it lies outside what our namespace shows.
std::optional<std::string> own_group(const std::string& root, std::string_view controller) {
  std::string_view rest;
  const std::string text = text_of(root + "/proc/self/cgroup");
  for (rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string names(line.substr(first + 1, second - first - 1));
    std::replace(names.begin(), names.end(), ',', ' ');
    if (controller.empty() ? !names.empty() : !has(words_of(names), controller)) continue;
    const std::string_view group = line.substr(second + 1);
    if (!group.starts_with('/') || (std::string(group) + "/").find("/../") != std::string::npos)
      return std::nullopt;
    return std::string(group == "/" ? "" : group);
  }
  return std::nullopt;
}

bool is_unit(std::string_view name) {
  return name.ends_with(".slice") || name.ends_with(".scope") || name.ends_with(".service");
}

// systemd resets what others write into groups that it did not delegate, so rights alone do not say enough.
bool delegated_by_systemd(const std::string& mount, std::string group) {
  while (!group.empty() && !is_unit(file_name(group))) group = group.substr(0, group.rfind('/'));
  if (group.empty()) return false;  // the root of the tree is systemd's own
  for (const char* name : {"user.delegate", "trusted.delegate"}) {
    char value = '\0';
    if (::getxattr((mount + group).c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

std::optional<pid_t> number_of(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0) return std::nullopt;
  return pid;
}

std::optional<pid_t> parent_of(const std::string& root, pid_t pid) {
  // The name, in parentheses, may hold anything.
  const std::string stat = text_of(root + "/proc/" + std::to_string(pid) + "/stat");
  const size_t after = stat.rfind(") ");
  if (after == std::string::npos) return std::nullopt;
  const auto fields = words_of(std::string_view(stat).substr(after + 2));
  return fields.size() < 2 ? std::nullopt : number_of(fields[1]);
}

// This process, or one that it started.
bool is_ours(const std::string& root, pid_t pid) {
  for (int i = 0; i < kMostAncestors; ++i) {
    if (pid == ::getpid()) return true;
    const auto parent = parent_of(root, pid);
    if (!parent) return false;
    pid = *parent;
  }
  return false;
}

// Fills to_move; false when somebody else lives there, too.
bool can_empty(const std::string& root, const std::string& directory, CgroupSite& site) {
  for (const std::string& word : words_of(text_of(directory + "/cgroup.procs"))) {
    const auto pid = number_of(word);
    if (!pid || !is_ours(root, *pid)) {
      site.to_move.clear();
      return false;
    }
    site.to_move.push_back(*pid);
  }
  return true;
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

void say_missing(CgroupSite& site) {
  std::vector<std::string> missing;
  for (const Controller controller : kControllers)
    if (site.of(controller).empty()) missing.emplace_back(to_string(controller));
  if (!missing.empty()) site.why = "not handed down to us: " + list(missing);
}

CgroupSite unified(const std::string& root, const std::string& mount) {
  CgroupSite site;
  site.version = CgroupSite::Version::kV2;
  site.found = "v2";
  const bool systemd = exists(root + "/run/systemd/system");
  if (systemd) site.mend = ::geteuid() == 0 ? kRootScope : kScope;
  const auto own = own_group(root, "");
  if (!own) {
    site.why = "this process is in no group that it can see";
    return site;
  }
  site.aside = file_name(*own) == kOwnLeaf;
  const std::string group = site.aside ? own->substr(0, own->rfind('/')) : *own;
  const std::string parent = mount + group;
  site.found += ", group " + (group.empty() ? std::string("/") : group);
  if (!writable(parent) || !writable(parent + "/cgroup.procs") ||
      !writable(parent + "/cgroup.subtree_control")) {
    site.why = "it is not ours to write";
    return site;
  }
  if (systemd && !delegated_by_systemd(mount, group)) {
    site.why = "systemd has not delegated it";
    return site;
  }
  const auto available = words_of(text_of(parent + "/cgroup.controllers"));
  const auto handed = words_of(text_of(parent + "/cgroup.subtree_control"));
  bool all_handed = true;
  std::vector<std::string> usable;
  for (const Controller controller : kControllers) {
    if (!has(available, to_string(controller))) continue;
    usable.emplace_back(to_string(controller));
    all_handed = all_handed && has(handed, to_string(controller));
  }
  if (usable.empty()) {
    site.why = "it has none of the controllers memory, pids, cpu";
    return site;
  }
  // The root of the whole tree, which has no type, may hold processes as well.
  const bool may_hold = !exists(parent + "/cgroup.type");
  if (!all_handed && !may_hold && !can_empty(root, parent, site)) {
    site.why = "processes of others live in it, and a group that holds processes hands nothing down";
    if (site.mend.empty()) site.mend = "start firestop in a group of its own";
    return site;
  }
  for (const Controller controller : kControllers)
    if (has(usable, to_string(controller))) site.of(controller) = parent;
  site.found += ", delegated to us: " + list(usable);
  say_missing(site);
  if (site.complete()) site.mend.clear();
  return site;
}

CgroupSite separate(const std::string& root, const std::string& mount) {
  CgroupSite site;
  std::vector<std::string> there, usable;
  for (const Controller controller : kControllers) {
    const std::string directory = join_path(mount, to_string(controller));
    if (!exists(directory)) continue;
    there.emplace_back(to_string(controller));
    const auto own = own_group(root, to_string(controller));
    // In a container our path may be one of the host's, which is not to be seen here.
    const std::string parent = directory + (own && exists(directory + *own) ? *own : "");
    if (!writable(parent)) continue;
    site.of(controller) = parent;
    usable.emplace_back(to_string(controller));
  }
  if (there.empty()) return site;
  site.version = CgroupSite::Version::kV1;
  site.found = "v1, " + (usable.empty() ? "for root only: " + list(there) : "ours to use: " + list(usable));
  if (usable.empty())
    site.why = "groups of version 1 are root's";
  else
    say_missing(site);
  return site;
}

}  // namespace

const char* to_string(Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return "memory";
    case Controller::kProcesses:
      return "pids";
    case Controller::kCpu:
      return "cpu";
  }
  return "?";
}

const char* to_string(CgroupSite::Version version) {
  switch (version) {
    case CgroupSite::Version::kNone:
      return "none";
    case CgroupSite::Version::kV1:
      return "v1";
    case CgroupSite::Version::kV2:
      return "v2";
  }
  return "?";
}

const std::string& CgroupSite::of(Controller controller) const {
  if (controller == Controller::kMemory) return memory;
  return controller == Controller::kCpu ? cpu : processes;
}

std::string& CgroupSite::of(Controller controller) {
  if (controller == Controller::kMemory) return memory;
  return controller == Controller::kCpu ? cpu : processes;
}

CgroupSite find_cgroups(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  const auto offered = words_of(text_of(mount + "/cgroup.controllers"));
  if (has(offered, "memory") || has(offered, "pids") || has(offered, "cpu")) return unified(root, mount);
  CgroupSite site = separate(root, mount);
  if (site.version != CgroupSite::Version::kNone) return site;
  site.found = exists(mount + "/cgroup.controllers") ? "v2 without any controller" : "none";
  site.why = "this host has no control groups for memory, processes or processor time";
  site.mend = "use a host with control groups v2, such as Debian 12's default";
  return site;
}

}  // namespace firestop::jail
