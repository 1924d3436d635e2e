// QEMU's command line, as a pure function: what a guest can reach is decided by these words and by the
// descriptors that go with them, so they are tested word by word. QEMU 7.2 or later; qemu(1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/vmm.h"

namespace firestop::vmm {

// The only names that QEMU sees, files of its jail: all of the guest's memory, mapped shared; what it boots.
inline constexpr const char* kMemoryPath = "/memory/ram";
inline constexpr const char* kKernelPath = "/kernel";
inline constexpr const char* kInitramfsPath = "/initramfs";

// One block device. All disks come as descriptors, so a name never appears in an option, and
// nothing that a person wrote can.
struct DiskArgument {
  std::string serial;  // [a-z0-9]{1,20}
  int fd = -1;         // QEMU's number; the same one may back several read-only disks
  bool read_only = true;
};

// Numbers of descriptors are those that QEMU sees.
struct Plan {
  Accelerator accelerator{};
  uint64_t memory = 0;  // bytes, a multiple of 1 MiB
  unsigned cpus = 1;
  uint64_t tsc_khz = 0;  // the host's; told to TCG guests
  int channel_fd = -1;
  int evidence_fd = -1;
  int console_fd = -1;  // the writing end of a pipe
  int qmp_fd = -1;
  std::vector<DiskArgument> disks;  // in the order of the devices; part of what a snapshot fixes
  std::optional<uint64_t> io_rate;  // bytes a second over all disks
  std::optional<int> tap_fd;        // the other end of the network device, where there is one
  bool unobserved = false;
  bool incoming = false;  // waits for a snapshot (QMP "migrate-incoming") instead of booting
};

// The guest kernel's command line.
std::string kernel_arguments(const Plan& plan);
// argv, beginning with `program`.
std::vector<std::string> qemu_arguments(const std::string& program, const Plan& plan);

}  // namespace firestop::vmm
