#include "guest/cgroup.h"

#include <fcntl.h>
#include <stdlib.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "guest/boot.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr char kPath[] = "/sys/fs/cgroup/container";
constexpr long kPeriodUs = 100'000;  // the kernel's own default

}  // namespace

std::string cgroup_file(const char* name) {
  return std::string(kPath) + "/" + name;
}

Result<Cgroup> Cgroup::make() {
  TRY(write_kernel_file(std::string(kCgroups) + "/cgroup.subtree_control", "+memory +pids +cpu"));
  TRY(make_directory(kPath, 0755));
  Cgroup group;
  TRY_ASSIGN(group.fd_, open_file(kPath, O_PATH | O_DIRECTORY));
  return group;
}

Result<void> Cgroup::limit(const Caps& caps) const {
  if (caps.memory_max > 0) TRY(write_kernel_file(cgroup_file("memory.max"), std::to_string(caps.memory_max)));
  // No swap device exists; this keeps it so that memory.max is the whole truth.
  if (::access(cgroup_file("memory.swap.max").c_str(), F_OK) == 0)
    TRY(write_kernel_file(cgroup_file("memory.swap.max"), "0"));
  TRY(write_kernel_file(cgroup_file("memory.oom.group"), "0"));
  // One more, for the reaper.
  if (caps.processes_max > 0)
    TRY(write_kernel_file(cgroup_file("pids.max"), std::to_string(caps.processes_max + 1)));
  if (caps.cpus > 0) {
    const long quota = std::max(1000L, static_cast<long>(caps.cpus * static_cast<double>(kPeriodUs)));
    TRY(write_kernel_file(cgroup_file("cpu.max"), std::to_string(quota) + " " + std::to_string(kPeriodUs)));
  }
  return {};
}

uint32_t Cgroup::oom_kills() const {
  const auto text = read_file(cgroup_file("memory.events"), 4096);
  if (!text) return 0;
  const size_t at = text->find("\noom_kill ");
  if (at == std::string::npos) return 0;
  return static_cast<uint32_t>(::strtoul(text->c_str() + at + sizeof("\noom_kill ") - 1, nullptr, 10));
}

uint32_t Cgroup::processes() const {
  const auto text = read_file(cgroup_file("cgroup.procs"), 4u << 20);
  return text ? static_cast<uint32_t>(std::count(text->begin(), text->end(), '\n')) : 0;
}

void Cgroup::kill_all() const {
  (void)write_kernel_file(cgroup_file("cgroup.kill"), "1");
}

}  // namespace firestop::guest
