// The system call filter of a parser of untrusted files (git's plumbing): files below what it sees, memory,
// threads, pipes. Beside what vm_filter refuses also waiting for others, epoll, timers with descriptors and
// every call on sockets; symbolic links and device files cannot be made, and no mode may hold set-uid or
// set-gid.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::jail {

// An array of struct sock_filter (linux/filter.h) for x86-64, the same every time. Error: "jail.seccomp".
Result<std::string> parser_filter();

}  // namespace firestop::jail
