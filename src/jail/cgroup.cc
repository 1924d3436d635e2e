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

bool has_word(std::string text, const std::string& word) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return (" " + text + " ").find(" " + word + " ") != std::string::npos;
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

// The runs that have a group below `parent`.
std::vector<std::string> runs_below(const std::string& parent) {
  std::vector<std::string> runs;
  DIR* directory = ::opendir(parent.c_str());
  while (const dirent* entry = directory ? ::readdir(directory) : nullptr) {
    const std::string name = entry->d_name;
    if (name.starts_with(kPrefix) && is_run(name.substr(std::strlen(kPrefix))))
      runs.push_back(name.substr(std::strlen(kPrefix)));
  }
  if (directory) ::closedir(directory);
  return runs;
}

std::string control_of(const std::string& group) {
  return group + "/cgroup.subtree_control";
}

// Out of a group that is to hand controllers down. Nothing has changed when this is false.
bool step_aside(const std::string& group, const std::vector<pid_t>& processes) {
  const std::string leaf = join_path(group, kOwnLeaf);
  if (::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return false;
  for (const pid_t pid : processes)
    if (!put(leaf + "/cgroup.procs", std::to_string(pid)) && errno != ESRCH) return false;
  return true;
}

// Undoes it, unless groups of other runs still need what is handed down.
void step_back(const std::string& group) {
  if (!runs_below(group).empty()) return;
  for (const Controller controller : kControllers)
    (void)put(control_of(group), std::string("-") + to_string(controller));
  if (put(group + "/cgroup.procs", std::to_string(::getpid())))
    (void)::rmdir(join_path(group, kOwnLeaf).c_str());
}

}  // namespace

bool Cgroup::make_one(const std::string& parent, const std::string& name,
                      const std::vector<Setting>& settings) {
  const std::string directory = join_path(parent, name);
  if (::mkdir(directory.c_str(), 0755) != 0) return false;
  for (const Setting& setting : settings) {
    const std::string file = join_path(directory, setting.file);
    if (setting.when == Setting::When::kIfThere && !exists(file)) continue;
    written_.push_back(file);
    if (put(file, setting.value)) continue;
    ::rmdir(directory.c_str());
    return false;
  }
  directories_.push_back(directory);
  return true;
}

void Cgroup::make_unified(const CgroupSite& site, const std::string& name, const CgroupLimits& limits) {
  const std::string parent = !site.memory.empty() ? site.memory
                             : !site.cpu.empty()  ? site.cpu
                                                  : site.processes;
  if (site.aside || !site.to_move.empty()) left_.push_back(parent);
  if (!site.to_move.empty() && !step_aside(parent, site.to_move)) return;
  const auto usable = [&](Controller controller) {
    return !site.of(controller).empty() &&
           (has_word(read_file(control_of(parent)).value_or(""), to_string(controller)) ||
            put(control_of(parent), std::string("+") + to_string(controller)));
  };
  CgroupCaps caps;
  std::vector<Setting> settings;
  caps.memory = usable(Controller::kMemory);
  if (caps.memory) {
    settings.push_back({"memory.max", std::to_string(limits.memory)});
    settings.push_back({"memory.swap.max", "0", Setting::When::kIfThere});
    settings.push_back({"memory.oom.group", "1"});
  }
  caps.processes = usable(Controller::kProcesses);
  if (caps.processes) settings.push_back({"pids.max", std::to_string(limits.processes)});
  caps.cpu = usable(Controller::kCpu);
  if (caps.cpu) settings.push_back({"cpu.max", quota(limits.cpus) + " " + std::to_string(kPeriod)});
  if (!settings.empty() && make_one(parent, name, settings)) caps_ = caps;
}

void Cgroup::make_separate(const CgroupSite& site, const std::string& name, const CgroupLimits& limits) {
  const auto make = [&](Controller controller, const std::vector<Setting>& settings) {
    return !site.of(controller).empty() && make_one(site.of(controller), name, settings);
  };
  const std::string memory = std::to_string(limits.memory);
  caps_.memory = make(
      Controller::kMemory,
      {{"memory.limit_in_bytes", memory}, {"memory.memsw.limit_in_bytes", memory, Setting::When::kIfThere}});
  caps_.processes = make(Controller::kProcesses, {{"pids.max", std::to_string(limits.processes)}});
  caps_.cpu = make(Controller::kCpu, {{"cpu.cfs_period_us", std::to_string(kPeriod)},
                                      {"cpu.cfs_quota_us", quota(limits.cpus)}});
}

Result<Cgroup> Cgroup::make(const std::string& root, const std::string& run, const CgroupLimits& limits) {
  if (!is_run(run)) return fail("jail.cgroup", "no name for a control group: the run's id is not plain");
  Cgroup group;
  CgroupCaps& caps = group.caps_;
  const CgroupSite site = find_cgroups(root);
  if (site.version == CgroupSite::Version::kV2 && site.usable())
    group.make_unified(site, kPrefix + run, limits);
  else if (site.usable())
    group.make_separate(site, kPrefix + run, limits);
  const bool some = caps.memory || caps.processes || caps.cpu;
  caps.hierarchy = to_string(some ? site.version : CgroupSite::Version::kNone);
  if (caps.memory && caps.processes && caps.cpu) return group;
  caps.why = site.found + (site.why.empty() ? "" : ": " + site.why);
  if (site.complete()) caps.why = site.found + ": the kernel refused what it offers";
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
  for (const auto& group : left_) step_back(group);
}

size_t sweep_cgroups(const std::string& root, const std::function<bool(const std::string&)>& is_dead) {
  const CgroupSite site = find_cgroups(root);
  std::vector<std::string> parents{site.memory};
  for (const std::string& parent : {site.processes, site.cpu})
    if (std::find(parents.begin(), parents.end(), parent) == parents.end()) parents.push_back(parent);
  size_t removed = 0;
  for (const auto& parent : parents) {
    if (parent.empty()) continue;
    for (const auto& run : runs_below(parent))
      if (is_dead(run) && remove_group(join_path(parent, kPrefix + run))) ++removed;
    (void)::rmdir(join_path(parent, kOwnLeaf).c_str());  // empty: nobody is in it any more
  }
  return removed;
}

}  // namespace firestop::jail
