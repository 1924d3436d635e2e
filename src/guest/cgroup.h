// The container's control group (cgroup v2): caps on memory, processes and processor time, and what they did.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

// The path of one of its files.
std::string cgroup_file(const char* name);

struct Caps {
  uint64_t memory_max = 0;     // bytes; 0: no cap of its own
  uint32_t processes_max = 0;  // tasks of the account, threads included; 0: no cap
  double cpus = 0;             // 0: no cap
};

class Cgroup {
 public:
  // Before "ready": an empty one, with the controllers that there are.
  static Result<Cgroup> make();
  Result<void> limit(const Caps& caps) const;

  int fd() const { return fd_.get(); }
  // Times that the kernel killed a process here for want of memory, since the start.
  uint32_t oom_kills() const;
  // Processes in it that are not zombies.
  uint32_t processes() const;
  void kill_all() const;

 private:
  UniqueFd fd_;
};

}  // namespace firestop::guest
