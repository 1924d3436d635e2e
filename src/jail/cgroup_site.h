// Where on this host control groups of ours may lie, and with which controllers. Looks, changes nothing: what
// cgroup.h does and what `firestop doctor` says rest on the same answer. See cgroups(7) and systemd's
// "Control Group APIs and Delegation".
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace firestop::jail {

enum class Controller : int { kMemory, kProcesses, kCpu };
inline constexpr Controller kControllers[] = {Controller::kMemory, Controller::kProcesses, Controller::kCpu};
const char* to_string(Controller controller);  // as the kernel calls it: "memory", "pids", "cpu"

// Version 2: a group may hand controllers down only while it holds no process itself. So a group that holds
// nothing but us gets this child, and we go there.
inline constexpr const char* kOwnLeaf = "firestop.self";

struct CgroupSite {
  enum class Version : int { kNone, kV1, kV2 };

  Version version = Version::kNone;
  // The group below which ours are made, a path; empty where the controller is not ours to use. In version 2
  // the same for all.
  std::string memory, processes, cpu;
  // Version 2: this group hands nothing down until these processes, all ours, have gone into kOwnLeaf.
  std::vector<pid_t> to_move;
  bool aside = false;  // we are there already
  // What is there and what stands in the way, for people; `mend` is empty where nothing can be done.
  std::string found, why, mend;

  const std::string& of(Controller controller) const;
  std::string& of(Controller controller);
  bool complete() const { return !memory.empty() && !processes.empty() && !cpu.empty(); }
  bool usable() const { return !memory.empty() || !processes.empty() || !cpu.empty(); }
};
const char* to_string(CgroupSite::Version version);  // "none", "v1", "v2"

// `root` stands before /proc, /run and /sys (tests).
CgroupSite find_cgroups(const std::string& root);

}  // namespace firestop::jail
