// What a word of a process's stands for.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace firestop::guest {

// The file, by links that lead to where they lead inside; not valid when it cannot be told. O_PATH: it opens
// nothing that is watched.
UniqueFd find_inside(uint32_t pid, const std::string& word);

}  // namespace firestop::guest
