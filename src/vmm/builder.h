// Starts one QEMU: descriptors, arguments, process. What it continues from, and whether that worked, is the
// caller's business (launch.cc, template.cc, probe.cc).
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "vmm/qmp.h"
#include "vmm/vmm.h"

namespace firestop::vmm {

// Every machine has the same block devices, since a clone must have those of its template: root, scratch,
// and kMaxDisks slots. Unused ones are empty.
struct StartOptions {
  uint64_t tsc_khz = 0;
  // Where QEMU reads the state to continue from; it boots if there is none.
  std::optional<int> incoming;
};

struct Started;

class VmBuilder {
 public:
  // Errors: "vmm.no_qemu", "vmm.bad_machine", "vmm.start", "jail.unavailable".
  static Result<Started> start(const Machine& machine, const StartOptions& options);
  // Reads the channel until the guest's first frame is complete, and returns what was read. Errors:
  // "vmm.no_boot", with what console and QEMU said last.
  static Result<std::string> wait_ready(Vm& vm, std::chrono::milliseconds limit);
  // "vmm.no_boot" with `what`, and what console and QEMU said last.
  static Unexpected no_boot(Vm& vm, const std::string& what);
  static void add_step(Vm& vm, std::string step, std::chrono::steady_clock::time_point since);
  static void set_template(Vm& vm, const std::string& key);
};

struct Started {
  Vm vm;
  Qmp qmp;               // the greeting is unread, capabilities are not negotiated
  UniqueFd memory;       // the guest's, a file in QEMU's jail
  int incoming_fd = -1;  // QEMU's number of options.incoming
};

// What `machine` must fulfil to be started: "vmm.bad_machine".
Result<void> check_machine(const Machine& machine);
// Whether its disks can be opened and have whole sectors: also "file.open".
Result<void> check_disks(const Machine& machine);
std::chrono::milliseconds boot_limit(Accelerator accelerator);

}  // namespace firestop::vmm
