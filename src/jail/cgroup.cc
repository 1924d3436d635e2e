#include "jail/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"

namespace firestop::jail {
namespace {

constexpr const char* kPrefix = "firestop-";
constexpr uint64_t kPeriod = 100'000;  // microseconds
constexpr uint64_t kSmallest = 1000;   // the kernel's least quota

bool is_run(const std::string& run) {
  return !run.empty() && run.size() <= 64 && run.front() != '-' &&
         std::all_of(run.begin(), run.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
         });
}

bool put(const std::string& file, const std::string& text) {
  // A cgroupfs refuses to create files, so a missing control is an error there.
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string text_of(const std::string& path) {
  return read_file(path, 1u << 20).value_or("");
}

bool has_word(std::string text, const std::string& word) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return (" " + text + " ").find(" " + word + " ") != std::string::npos;
}

// Our group in the hierarchy whose line of /proc/self/cgroup has this middle field; empty if there is none.
std::string own_group(const std::string& root, const std::string& controllers) {
  const std::string text = text_of(root + "/proc/self/cgroup");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.find("/..") != std::string::npos) continue;
    std::string names = line.substr(first + 1, second - first - 1);
    std::replace(names.begin(), names.end(), ',', ' ');
    if (controllers.empty() ? names.empty() : has_word(names, controllers)) return line.substr(second + 1);
  }
  return {};
}

std::string below(const std::string& mount, const std::string& group) {
  return group == "/" || group.empty() ? mount : mount + group;
}

// Where groups of ours would lie: version 2 first, then a folder a controller of version 1.
std::string unified_parent(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  return exists(mount + "/cgroup.controllers") ? below(mount, own_group(root, "")) : "";
}
std::string separate_parent(const std::string& root, const std::string& controller) {
  const std::string mount = root + "/sys/fs/cgroup/" + controller;
  return exists(mount) ? below(mount, own_group(root, controller)) : "";
}

std::string quota(double cpus) {
  return std::to_string(std::max(kSmallest, static_cast<uint64_t>(cpus * static_cast<double>(kPeriod))));
}

// A group that has just become empty stays busy for moments.
bool remove_group(const std::string& directory) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return true;
    if (errno != EBUSY) return false;
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

}  // namespace

bool Cgroup::make_one(const std::string& parent, const std::string& name,
                      const std::vector<std::pair<std::string, std::string>>& settings) {
  const std::string directory = join_path(parent, name);
  if (::mkdir(directory.c_str(), 0755) != 0) return false;
  for (const auto& [file, value] : settings) {
    written_.push_back(join_path(directory, file));
    if (put(written_.back(), value)) continue;
    const int number = errno;
    ::rmdir(directory.c_str());
    errno = number;
    return false;
  }
  directories_.push_back(directory);
  return true;
}

Result<Cgroup> Cgroup::make(const std::string& root, const std::string& run, const CgroupLimits& limits) {
  if (!is_run(run)) return fail("jail.cgroup", "no name for a control group: the run's id is not plain");
  Cgroup group;
  CgroupCaps& caps = group.caps_;
  const std::string name = kPrefix + run;
  const std::string pids = std::to_string(limits.processes);
  const std::string memory = std::to_string(limits.memory);
  if (const std::string parent = unified_parent(root); !parent.empty()) {
    // Limits are written to the group's parent's children, once the parent hands the controllers down.
    const std::string handed = text_of(parent + "/cgroup.subtree_control");
    const auto usable = [&](const std::string& controller) {
      return has_word(handed, controller) || (has_word(text_of(parent + "/cgroup.controllers"), controller) &&
                                              put(parent + "/cgroup.subtree_control", "+" + controller));
    };
    std::vector<std::pair<std::string, std::string>> settings;
    caps.memory = usable("memory");
    caps.processes = usable("pids");
    caps.cpu = usable("cpu");
    if (caps.memory) settings.emplace_back("memory.max", memory);
    if (caps.memory) settings.emplace_back("memory.oom.group", "1");
    if (caps.processes) settings.emplace_back("pids.max", pids);
    if (caps.cpu) settings.emplace_back("cpu.max", quota(limits.cpus) + " " + std::to_string(kPeriod));
    caps.hierarchy = "v2";
    if (settings.empty() || !group.make_one(parent, name, settings)) caps = {};
  }
  if (!caps.memory && !caps.processes && !caps.cpu) {
    const auto separate = [&](const char* controller,
                              const std::vector<std::pair<std::string, std::string>>& settings) {
      const std::string parent = separate_parent(root, controller);
      return !parent.empty() && group.make_one(parent, name, settings);
    };
    caps.memory = separate("memory", {{"memory.limit_in_bytes", memory}});
    caps.processes = separate("pids", {{"pids.max", pids}});
    caps.cpu = separate(
        "cpu", {{"cpu.cfs_period_us", std::to_string(kPeriod)}, {"cpu.cfs_quota_us", quota(limits.cpus)}});
    caps.hierarchy = caps.memory || caps.processes || caps.cpu ? "v1" : "none";
  }
  if (caps.hierarchy == "none")
    caps.why = "no control group of this host may be used by this process";
  else if (!caps.memory || !caps.processes || !caps.cpu)
    caps.why = std::string("this host hands down no control group for") + (caps.memory ? "" : " memory") +
               (caps.processes ? "" : " processes") + (caps.cpu ? "" : " processors");
  return group;
}

Result<void> Cgroup::admit(pid_t pid) const {
  for (const auto& directory : directories_)
    if (!put(directory + "/cgroup.procs", std::to_string(pid)))
      return fail_errno("jail.cgroup", "a process cannot be put into " + directory);
  return {};
}

Cgroup::~Cgroup() {
  for (const auto& directory : directories_) {
    if (remove_group(directory)) continue;
    for (const auto& file : written_) ::unlink(file.c_str());
    ::unlink((directory + "/cgroup.procs").c_str());
    (void)remove_group(directory);
  }
}

size_t sweep_cgroups(const std::string& root, const std::function<bool(const std::string&)>& is_dead) {
  std::vector<std::string> parents{unified_parent(root)};
  for (const char* controller : {"memory", "pids", "cpu"})
    parents.push_back(separate_parent(root, controller));
  size_t removed = 0;
  for (const auto& parent : parents) {
    DIR* directory = parent.empty() ? nullptr : ::opendir(parent.c_str());
    while (const dirent* entry = directory ? ::readdir(directory) : nullptr) {
      const std::string name = entry->d_name;
      if (!name.starts_with(kPrefix)) continue;
      const std::string run = name.substr(std::strlen(kPrefix));
      if (is_run(run) && is_dead(run) && remove_group(join_path(parent, name))) ++removed;
    }
    if (directory) ::closedir(directory);
  }
  return removed;
}

}  // namespace firestop::jail
