// One QEMU microvm: started from a snapshot template where it can be, talked to by descriptors only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace firestop::jail {
class Cgroup;
}

namespace firestop::vmm {

enum class Accelerator { kKvm, kTcg };

struct Probe {
  Accelerator accelerator{};
  std::string why;  // why not KVM, for people; empty with KVM
};
// KVM when a guest really starts with it, else TCG. The answer is kept in the cache, by host boot and QEMU
// version. FIRESTOP_ACCEL=kvm|tcg overrides. `kernel` and `initramfs` are what is tried.
Result<Probe> probe_accelerator(const std::string& kernel, const std::string& initramfs,
                                const std::string& root);

// Whether this host lets us jail QEMU, by starting one for its version; machines never run outside a jail.
// Errors: "jail.unavailable", "vmm.no_qemu".
Result<void> check_jail();

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
  // A tap with virtio-net headers: then the guest has one network device, which ends there. Else it has none.
  // Not owned; a template is booted with the same.
  int tap = -1;
  // Names the machine's control group, where the host lets us have one; without it there is none.
  std::string run;
  double processor_time = 0;  // processors' worth of time that group gives
  // For measurements: the guest's kernel and collectors observe nothing. Another kind of machine, so a
  // template of its own.
  bool unobserved = false;
  Accelerator accelerator{};
};

inline constexpr size_t kMaxDisks = 16;
inline constexpr const char* kNetworkMac = "02:66:73:00:00:02";  // of all guests: each has a link of its own

struct StepTime {
  std::string step;
  std::chrono::microseconds took{};
};

// A started machine. Destroying it kills QEMU and waits for it.
class Vm {
 public:
  Vm() = default;
  Vm(Vm&&) noexcept;
  Vm& operator=(Vm&&) noexcept;  // ends the machine that was here
  ~Vm();

  // Stream sockets to the guest's ports "firestop.0" and "firestop.1"; non-blocking.
  int channel_fd() const { return channel_.get(); }
  int evidence_fd() const { return evidence_.get(); }
  int exit_fd() const { return child_.pidfd.get(); }  // readable when QEMU ended; -1 after kill()
  pid_t pid() const { return child_.pid; }
  // The last kConsoleTail bytes of the guest's console, as far as read; drain_console() first. The guest
  // wrote them: printable_tail() before a person sees them.
  const std::string& console() const { return console_; }
  // Readable when there is output; then drain_console(). A guest that writes more than 64 KiB undrained
  // waits.
  int console_fd() const { return console_fd_.get(); }
  void drain_console();
  // Stops QEMU with all its threads, until kill().
  void freeze();
  // SIGKILL and reap; returns the wait(2) status. Nothing happens the second time.
  int kill();
  // What QEMU said on stderr, at most its last kConsoleTail bytes.
  const std::string& qemu_errors();
  bool from_template() const { return from_template_; }
  // The template that it was cloned from, for remove_template(); empty after a cold boot.
  const std::string& template_key() const { return template_key_; }
  const std::vector<StepTime>& steps() const { return steps_; }
  // What holds QEMU as a whole; null without Machine::run.
  const jail::Cgroup* cgroup() const { return cgroup_.get(); }

 private:
  friend class VmBuilder;                       // builder.h
  std::shared_ptr<const jail::Cgroup> cgroup_;  // goes when QEMU has gone
  Child child_;
  int status_ = 0;
  UniqueFd channel_, evidence_, console_fd_, errors_fd_;
  std::string console_, errors_;
  bool from_template_ = false;
  std::string template_key_;
  std::vector<StepTime> steps_;
};

inline constexpr size_t kConsoleTail = 64u << 10;
// The last `lines` lines, at most 4 KiB, as printable text: what a terminal would obey is shown as '?'.
std::string printable_tail(std::string_view text, size_t lines);

// Starts `machine`: clones the template of its kernel, image, memory, cpus and kinds of devices (made here at
// first use, by a cold boot up to the guest's "ready"), or boots cold when templates are impossible, which is
// said through `notice`. Afterwards the guest is at "ready" and waits for "start" on the channel; with a
// template it has already said so, and `ready` holds the bytes it said.
struct Launched {
  Vm vm;
  std::string ready;  // bytes read from the channel until then, to be fed to the decoder first
};
// Errors: "vmm.no_qemu"; "jail.unavailable" (src/jail/vm_jail.h); "vmm.bad_machine" (a disk's size or serial,
// memory, cpus); "vmm.no_boot" when the guest does not say "ready" within the limit (60 s with TCG, 20 s with
// KVM, FIRESTOP_BOOT_LIMIT_MS), with the last lines of its console and what QEMU said. QEMU dies with the
// calling thread (PR_SET_PDEATHSIG).
Result<Launched> launch(const Machine& machine, const std::function<void(const std::string&)>& notice);

// The snapshot templates of this user, in cache_directory()/templates/<key>/.
struct TemplateInfo {
  std::string key, image_digest;
  uint64_t memory = 0;  // bytes of the guest
  unsigned cpus = 0;
  uint64_t bytes = 0;             // on disk
  int64_t created = 0, used = 0;  // seconds since 1970
};
Result<std::vector<TemplateInfo>> list_templates();  // last used first
// Removes all, or all but the kKeptTemplates that were used last, and what killed builders left. Machines
// that run are not affected. Returns the bytes freed.
inline constexpr size_t kKeptTemplates = 6;
Result<uint64_t> prune_templates(bool all);
// For a caller whose clone did not answer: the next start makes a new one. Missing is fine.
Result<void> remove_template(const std::string& key);

}  // namespace firestop::vmm
