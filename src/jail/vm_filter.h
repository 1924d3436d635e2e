// The system call filter of QEMU, below its own (-sandbox): what a QEMU that runs a microvm from descriptors
// uses, by subject; the rest fails with EPERM, what libraries have a second way for with ENOSYS.
//
//  - Threads may be made, namespaces and (beside exec, which see) processes not.
//  - No new sockets of any family: QEMU works on those that it was given.
//  - No ptrace, mounts, keys, BPF, performance counters, io_uring, userfaultfd, handles, modules, clocks.
//  - ioctl(2) of KVM, of a tap, and the five that libraries use; none that types into a terminal.
//  - Only asking for limits, not setting them.
//  - execve(2) is let through, because the filter is there before QEMU is; QEMU's own (spawn=deny) then takes
//    it away, and the jail's root holds nothing to execute but QEMU.
//  - Other ways to call (32-bit, x32) end the process.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::jail {

// An array of struct sock_filter (linux/filter.h) for x86-64, the same every time. Error: "jail.seccomp".
Result<std::string> vm_filter();

}  // namespace firestop::jail
