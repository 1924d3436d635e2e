// The system call filter of the egress process, once it is set up: it talks on sockets, computes, waits,
// reads a few files (jail/landlock.h says which), and nothing else. The rest fails with EPERM, what libraries
// have a second way for with ENOSYS.
//
//  - Sockets of IPv4, IPv6, the resolver's (Unix, routing netlink), none that sees packets.
//  - Threads may be made, processes, namespaces and programs not.
//  - No ptrace, memory of others, mounts, keys, BPF, performance counters, io_uring, userfaultfd, modules,
//  clocks.
//  - No new descriptor of another process (pidfd_getfd).
//  - Other ways to call (32-bit, x32) end the process.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::jail {

// An array of struct sock_filter (linux/filter.h) for x86-64. Error: "jail.seccomp".
Result<std::string> network_filter();

// For all threads of this process and for good; sets no_new_privs. Error: "jail.seccomp".
Result<void> install_filter(const std::string& filter);

// Gives up every capability for good, in all sets. Error: "jail.capabilities".
Result<void> drop_capabilities();

}  // namespace firestop::jail
