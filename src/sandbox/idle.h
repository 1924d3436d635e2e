// Whether a machine does nothing: no byte goes in or out, nothing crosses, and it computes less than kStill.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>

namespace firestop::sandbox {

class IdleWatch {
 public:
  // Of a processor, over the time between two questions. A guest that only waits uses some hundredths.
  static constexpr double kStill = 0.1;

  using Clock = std::chrono::steady_clock;
  // The processor time that the machine has used so far; nothing if that cannot be told, which counts as
  // work.
  using Used = std::function<std::optional<std::chrono::microseconds>()>;

  IdleWatch(std::chrono::milliseconds limit, Used used, Clock::time_point now);

  void happened(Clock::time_point now) { last_ = now; }
  // To be asked about once a second. True when nothing has happened for the limit.
  bool over(Clock::time_point now);

 private:
  std::chrono::milliseconds limit_;
  Used used_;
  std::optional<std::chrono::microseconds> before_;
  Clock::time_point last_, asked_;
};

// User and system time of a process with all its threads (proc(5), stat).
std::optional<std::chrono::microseconds> processor_time(pid_t pid);

}  // namespace firestop::sandbox
