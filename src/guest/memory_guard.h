// Ends what thrashes. When programs fill their memory cap, the kernel first takes away the cached pages of
// the very code they run, and reads them again, for minutes: nothing fails and nothing moves. This watches
// for that state (pressure stall information, Documentation/accounting/psi.rst) and has the kernel pick its
// victim at once, as it would in the end.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

class MemoryGuard {
 public:
  // `memory_max` is the cap of the container's cgroup, in bytes.
  static Result<MemoryGuard> make(uint64_t memory_max);

  // Pollable for EPOLLPRI: all of the container stood still for half of the last second.
  int fd() const { return pressure_.get(); }
  // Makes the kernel kill a process if what cannot be dropped fills the cap; else there is nothing to gain.
  void act() const;

 private:
  UniqueFd pressure_;
  uint64_t memory_max_ = 0;
};

}  // namespace firestop::guest
