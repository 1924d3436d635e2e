#include "sandbox/idle.h"

#include <unistd.h>

#include <sstream>
#include <string>

#include "base/file.h"

namespace firestop::sandbox {

using std::chrono::microseconds;

IdleWatch::IdleWatch(std::chrono::milliseconds limit, Used used, Clock::time_point now)
    : limit_(limit), used_(std::move(used)), before_(used_()), last_(now), asked_(now) {}

bool IdleWatch::over(Clock::time_point now) {
  const auto used = used_();
  const std::chrono::duration<double> passed = now - asked_;
  if (!used || !before_ || std::chrono::duration<double>(*used - *before_) > passed * kStill) last_ = now;
  before_ = used;
  asked_ = now;
  return now - last_ >= limit_;
}

std::optional<microseconds> processor_time(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!text) return std::nullopt;
  // The name, field 2, may have anything in it, so count from its end.
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  int64_t user = 0, system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  return microseconds((user + system) * (1'000'000 / ::sysconf(_SC_CLK_TCK)));
}

}  // namespace firestop::sandbox
