// A first manifest for a folder, commented, from what can be seen there.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::manifest {

// The text of a firestop.yaml that loads without faults from `folder`. Looks at the names of build files and
// at .git/HEAD; runs nothing. "init.not_a_folder" if `folder` cannot be opened as a directory.
Result<std::string> init_text(const std::string& folder);

}  // namespace firestop::manifest
