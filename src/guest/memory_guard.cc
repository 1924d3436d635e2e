#include "guest/memory_guard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "guest/cgroup.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr int64_t kWindowMs = 2000;  // so long must it last
constexpr int64_t kQuietMs = 1000;   // after so long without an event it is over
constexpr uint64_t kPage = 4096;
constexpr uint64_t kTurnovers = 4;  // in a window, of the cache that is left

int64_t now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// A counter of memory.stat.
uint64_t counter(const char* stat, const std::string& name) {
  for (const char* line = stat; *line != '\0';) {
    if (::strncmp(line, name.c_str(), name.size()) == 0 && line[name.size()] == ' ')
      return ::strtoull(line + name.size() + 1, nullptr, 10);
    const char* end = ::strchr(line, '\n');
    if (end == nullptr) break;
    line = end + 1;
  }
  return 0;
}

std::string memory_stat() {
  return read_file(cgroup_file("memory.stat"), 64u << 10).value_or("");
}

uint64_t refaults(const char* stat) {
  return counter(stat, "workingset_refault_file");
}

}  // namespace

bool thrashes(const char* stat, uint64_t memory_max, uint64_t refaults_before) {
  // What the kernel cannot drop, since there is no swap, fills the cap ...
  const uint64_t fixed = counter(stat, "anon") + counter(stat, "shmem");
  if (fixed < memory_max / 8 * 7) return false;
  // ... and the cache that is left goes round: a program that merely streams through files refaults nothing.
  const uint64_t cache = counter(stat, "file") - counter(stat, "shmem");
  return refaults(stat) - refaults_before >= kTurnovers * (cache / kPage) + 256;
}

Result<MemoryGuard> MemoryGuard::make(uint64_t memory_max) {
  MemoryGuard guard;
  guard.memory_max_ = memory_max;
  TRY_ASSIGN(guard.events_, open_file(cgroup_file("memory.events"), O_RDONLY));
  char text[512];
  (void)!::pread(guard.events_.get(), text, sizeof text, 0);  // the next change is an event
  return guard;
}

void MemoryGuard::act() {
  char text[512];
  (void)!::pread(events_.get(), text, sizeof text, 0);
  const int64_t now = now_ms();
  const bool begins = now - last_ms_ > kQuietMs;
  last_ms_ = now;
  if (!begins && now - since_ms_ < kWindowMs) return;
  const std::string stat = memory_stat();
  const bool end_it = !begins && thrashes(stat.c_str(), memory_max_, refaults_);
  since_ms_ = now;
  refaults_ = refaults(stat.c_str());
  if (!end_it) return;
  // A cap below what cannot be dropped: the kernel tries, then kills; then the cap is as before.
  const uint64_t fixed = counter(stat.c_str(), "anon") + counter(stat.c_str(), "shmem");
  (void)write_kernel_file(cgroup_file("memory.max"), std::to_string(fixed / 16 * 15));
  (void)write_kernel_file(cgroup_file("memory.max"), std::to_string(memory_max_));
}

}  // namespace firestop::guest
