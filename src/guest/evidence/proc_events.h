// The kernel's process connector (linux/cn_proc.h): forks, executions and ends, as they happen. Its messages
// carry a number a processor, so that what was dropped is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "guest/evidence/netlink.h"

namespace firestop::guest {

struct ProcEvent {
  enum class Kind { kFork, kThread, kExec, kExit, kOther };
  Kind kind = Kind::kOther;
  uint32_t pid = 0;     // of the process; of kFork the child's
  uint32_t thread = 0;  // of kExit: which thread
  uint32_t parent = 0;  // of kFork
  uint32_t status = 0;  // of kExit: wait(2)
  uint64_t at_ns = 0;   // CLOCK_MONOTONIC
  uint32_t cpu = 0, number = 0;
};

// A message's payload; nothing when it is none.
std::optional<ProcEvent> parse_proc_event(std::string_view payload);

class ProcEvents {
 public:
  static Result<ProcEvents> open();
  int fd() const { return link_.fd(); }
  // From now on numbers count.
  void begin();
  // The next one, without waiting.
  std::optional<ProcEvent> next();
  // How many were dropped since this was last asked.
  uint64_t take_lost();

 private:
  Netlink link_;
  std::map<uint32_t, uint32_t> next_;  // number, by processor
  uint64_t lost_ = 0;
};

}  // namespace firestop::guest
