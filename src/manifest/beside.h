// What lies beside a manifest: perhaps in a repository that somebody else writes to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace firestop::manifest {

// The bytes of a regular file; nullopt if there is none. A fifo or a device (which would make us wait), a
// folder, and more than `limit` bytes are errors ("file.not_regular", "file.too_large").
Result<std::optional<std::string>> read_beside(const std::string& path, uint64_t limit);

}  // namespace firestop::manifest
