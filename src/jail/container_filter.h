// The system call filter of the container in the guest: made here, on the host, with libseccomp, and sent to
// PID 1 as the kernel's own instructions. It keeps an ordinary program happy (compilers, interpreters,
// debuggers, browsers) and takes away what only widens the way into the guest's kernel.
//
//  - What a program may use is listed, by subject; everything else fails with ENOSYS, as on an older kernel,
//    so that libraries fall back.
//  - What exists but is refused fails with EPERM: mounts, namespaces, modules, keys, BPF, performance
//    counters, io_uring, clocks, and the rest of what needs a capability that nobody in a container has.
//  - clone(2) may make processes and threads, not namespaces; clone3(2), whose flags a filter cannot see,
//    fails with ENOSYS, and C libraries then use clone(2).
//  - Sockets are of the families unix, inet, inet6 and netlink's route protocol; others EAFNOSUPPORT.
//  - Other ways to call (32-bit, x32) end the process: nothing in an x86-64 image needs them.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::jail {

// An array of struct sock_filter (linux/filter.h) for x86-64, at most BPF_MAXINSNS of them. The same bytes
// every time. Errors: "jail.seccomp", when the library refuses.
Result<std::string> container_filter();

}  // namespace firestop::jail
