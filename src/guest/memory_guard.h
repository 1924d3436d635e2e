// Ends what thrashes. When programs fill their memory cap, the kernel first takes away the cached pages of
// the very code they run, and reads them again, for minutes: nothing fails and nothing moves. This notices
// that state and has the kernel pick its victim at once, as it would in the end.
//
// Pressure stall information does not show it: the pages come back from a fast disk, so the time goes into
// reading and dropping them, not into waiting. Refaults do.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

class MemoryGuard {
 public:
  // `memory_max` is the cap of the container's cgroup, in bytes.
  static Result<MemoryGuard> make(uint64_t memory_max);

  // Pollable for EPOLLPRI: the cap was hit.
  int fd() const { return events_.get(); }
  // After each such event.
  void act();

 private:
  UniqueFd events_;
  uint64_t memory_max_ = 0;
  // While the cap is hit again and again: since when, when last, and the refaults at the beginning.
  int64_t since_ms_ = 0, last_ms_ = 0;
  uint64_t refaults_ = 0;
};

// The decision, for tests: `stat` is the text of memory.stat, `refaults_before` its counter a window ago.
bool thrashes(const char* stat, uint64_t memory_max, uint64_t refaults_before);

}  // namespace firestop::guest
