// A control group for one machine, where the host lets us have one: version 2 when a part of the tree is
// delegated to us, version 1 for root, else none (cgroup_site.h). The caps on memory hold without swap.
//
// Not the io controller: it counts what reaches one block device, after the host's page cache and its write
// back, and file systems such as btrfs or overlay have no device to name. limits.io is about what the sandbox
// asks of its disks, which only QEMU sees.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "jail/cgroup_site.h"

namespace firestop::jail {

struct CgroupLimits {
  uint64_t memory = 0;     // bytes, of the machine and of what runs it
  uint64_t processes = 0;  // threads count
  double cpus = 0;         // of processor time; fractions are possible
};

// Which of the limits hold here, and why the others don't.
struct CgroupCaps {
  bool memory = false, processes = false, cpu = false;
  std::string hierarchy;  // "v2", "v1", "none"
  std::string why;        // for people; empty if all hold
};

// Groups are named "firestop-RUN". Destroying it removes them; what is in them must have ended before.
class Cgroup {
 public:
  // `root` stands before /proc and /sys (tests). `run` is a run's id: letters, digits, '-'. A host without
  // usable groups is no error: caps() says so. In version 2 this process may be moved into kOwnLeaf; the last
  // Cgroup moves it back. Errors: "jail.cgroup", for a bad name.
  static Result<Cgroup> make(const std::string& root, const std::string& run, const CgroupLimits& limits);
  Cgroup(Cgroup&&) noexcept = default;
  Cgroup& operator=(Cgroup&&) = delete;
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup();

  // Puts a process into it. An error means that a limit that caps() promises would not hold.
  Result<void> admit(pid_t pid) const;
  const CgroupCaps& caps() const { return caps_; }

 private:
  Cgroup() = default;
  struct Setting {
    const char* file;
    std::string value;
    enum class When : int { kAlways, kIfThere } when = When::kAlways;
  };
  bool make_one(const std::string& parent, const std::string& name, const std::vector<Setting>& settings);
  void make_unified(const CgroupSite& site, const std::string& name, const CgroupLimits& limits);
  void make_separate(const CgroupSite& site, const std::string& name, const CgroupLimits& limits);
  CgroupCaps caps_;
  std::vector<std::string> directories_;
  std::vector<std::string> written_;  // on a file system that is no cgroupfs they stand in the way
  std::vector<std::string> left_;     // the group that this process left for kOwnLeaf
};

// Removes the groups of runs for which `is_dead` says yes; looks only at names that make() gives, only where
// it makes them. Returns how many.
size_t sweep_cgroups(const std::string& root, const std::function<bool(const std::string& run)>& is_dead);

}  // namespace firestop::jail
