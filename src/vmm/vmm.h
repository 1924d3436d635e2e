// One QEMU microvm: started from a snapshot template where it can be, talked to by descriptors only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace firestop::vmm {

enum class Accelerator { kKvm, kTcg };

struct Probe {
  Accelerator accelerator{};
  std::string why;  // why not KVM, for people; empty with KVM
};
// KVM when a guest really starts with it, else TCG. The answer is kept in the cache, by host boot and QEMU
// version. FIRESTOP_ACCEL=kvm|tcg overrides. `kernel` and `initramfs` are what is tried.
Result<Probe> probe_accelerator(const std::string& kernel, const std::string& initramfs, const std::string& root);

struct Disk {
  std::string serial;  // "root", "scratch", "ro0", ...: how the guest finds it; at most 20 bytes
  std::string path;
  bool read_only = true;
};

struct Machine {
  std::string kernel, initramfs, image_digest;
  Disk root;
  Disk scratch;                     // writable; sparse raw
  std::vector<Disk> disks;          // read-only, serials "ro0".."ro15"; at most kMaxDisks
  uint64_t memory = 0;              // bytes, a multiple of 1 MiB
  unsigned cpus = 1;                // virtual processors
  std::optional<uint64_t> io_rate;  // bytes a second over all disks
  Accelerator accelerator{};
};

inline constexpr size_t kMaxDisks = 16;

struct StepTime {
  std::string step;
  std::chrono::microseconds took{};
};

// A started machine. Destroying it kills QEMU and waits for it.
class Vm {
 public:
  Vm() = default;
  Vm(Vm&&) = default;
  Vm& operator=(Vm&&) = default;
  ~Vm();

  int channel_fd() const;   // a stream socket to the guest's port "firestop.0"; non-blocking
  int exit_fd() const;      // readable when QEMU ended
  pid_t pid() const;
  // The last 64 KiB of the guest's console, as far as read; drain_console() first.
  const std::string& console() const { return console_; }
  int console_fd() const;   // readable when there is console output; call drain_console()
  void drain_console();
  // SIGKILL and reap. What QEMU said on stderr is in qemu_errors().
  void kill();
  std::string qemu_errors();
  bool from_template() const { return from_template_; }
  const std::vector<StepTime>& steps() const { return steps_; }

 private:
  friend class VmBuilder;  // launch.cc
  Child child_;
  UniqueFd channel_, console_fd_, errors_;
  std::string console_;
  bool from_template_ = false;
  std::vector<StepTime> steps_;
};

// Starts `machine`: clones the template of its kernel, image, memory and cpus (made here at first use, by a
// cold boot up to the guest's "ready"), or boots cold when templates are impossible, which is said through
// `notice`. Afterwards the guest is at "ready" and waits for "start" on the channel; with a template it
// has already said so, and `ready` holds the bytes it said.
struct Launched {
  Vm vm;
  std::string ready;  // bytes read from the channel at template time, to be fed to the decoder first
};
Result<Launched> launch(const Machine& machine, const std::function<void(const std::string&)>& notice);

}  // namespace firestop::vmm
