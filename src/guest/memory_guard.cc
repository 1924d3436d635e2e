#include "guest/memory_guard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "guest/cgroup.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr char kTrigger[] = "full 500000 1000000";  // microseconds: so much stall in such a window

// A counter of memory.stat, in bytes.
uint64_t counter(const std::string& stat, const std::string& name) {
  const size_t at = ("\n" + stat).find("\n" + name + " ");
  return at == std::string::npos ? 0 : ::strtoull(stat.c_str() + at + name.size() + 1, nullptr, 10);
}

}  // namespace

Result<MemoryGuard> MemoryGuard::make(uint64_t memory_max) {
  MemoryGuard guard;
  guard.memory_max_ = memory_max;
  TRY_ASSIGN(guard.pressure_, open_file(cgroup_file("memory.pressure"), O_RDWR | O_NONBLOCK));
  if (::write(guard.pressure_.get(), kTrigger, sizeof kTrigger) < 0)
    return fail_errno("guest.memory_guard", "cannot watch the memory's pressure");
  return guard;
}

void MemoryGuard::act() const {
  const auto stat = read_file(cgroup_file("memory.stat"), 64u << 10);
  if (!stat) return;
  const uint64_t fixed = counter(*stat, "anon") + counter(*stat, "shmem");
  if (fixed < memory_max_ / 8 * 7) return;
  // A cap below what cannot be dropped: the kernel tries, then kills, then the cap is as before.
  (void)write_kernel_file(cgroup_file("memory.max"), std::to_string(fixed / 16 * 15));
  (void)write_kernel_file(cgroup_file("memory.max"), std::to_string(memory_max_));
}

}  // namespace firestop::guest
