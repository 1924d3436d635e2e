// A finished pack becomes part of a repository, without a git that would have to see all of it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace firestop::workspace {

// "pack-HASH" of the one pack in `folder`, whose name is not believed. Error: "import.failed".
Result<std::string> name_of_pack(const std::string& folder);

// Copies the one pack-HASH.{pack,rev,idx} in `folder` (hostile: its own names and sizes are not believed)
// into GIT_DIR/objects/pack, the index last, since with it the pack is there. Nothing is overwritten.
// `max_bytes` bounds each file. Error: "import.failed".
Result<void> publish_pack(const std::string& folder, const std::string& git_dir, uint64_t max_bytes);

}  // namespace firestop::workspace
