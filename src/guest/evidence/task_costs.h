// What threads had used when they ended, from the kernel's taskstats
// (Documentation/accounting/taskstats.rst).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "guest/evidence/netlink.h"

namespace firestop::guest {

struct TaskCost {
  uint32_t process = 0, thread = 0;
  uint64_t user_us = 0, system_us = 0, max_rss_kib = 0;
};

// A message's payload; nothing when it is not about the end of a thread.
std::optional<TaskCost> parse_task_cost(std::string_view payload);

class TaskCosts {
 public:
  static Result<TaskCosts> open();
  int fd() const { return link_.fd(); }
  std::optional<TaskCost> next();  // without waiting

 private:
  Netlink link_;
};

}  // namespace firestop::guest
