// What the egress process gives up once it is set up, for good. Before it made any thread: Landlock counts
// for the thread that asks and those that it makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "jail/landlock.h"

namespace firestop::egress {

inline constexpr uint64_t kMostMemory = 1u << 30;  // bytes of the egress process (RLIMIT_DATA)

// At the very beginning, before anything secret is there: no core files, nobody of this user may look into
// this process, descriptors for `connections`.
Result<void> keep_to_itself(uint32_t connections);

enum class Writes { kNothing, kOpenFiles };  // kOpenFiles: files that are open already may grow

// Capabilities, files but `readable`, programs, processes, every system call that is not listed
// (jail/network_filter.h).
Result<jail::Landlocked> lock_down(const std::vector<std::string>& readable,
                                   Writes writes = Writes::kNothing);

}  // namespace firestop::egress
