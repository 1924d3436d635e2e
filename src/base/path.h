// Paths that other people wrote.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop {

// Why `path` is not a relative path in the one normal form, or empty if it is. Refused: empty, absolute,
// ".", "..", "~", an empty component, a trailing slash, NUL and other control characters, backslash,
// a drive letter, more than 4096 bytes, a component of more than 255 bytes.
std::string_view why_not_relative_path(std::string_view path);

// Opens below `root_fd` and never leaves it, whatever links lie on the way (openat2(2),
// RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS). Close-on-exec.
Result<UniqueFd> open_beneath(int root_fd, const std::string& path, int flags, unsigned mode = 0600);

std::string join_path(std::string_view directory, std::string_view name);
std::string_view file_name(std::string_view path);
std::string parent_path(std::string_view path);  // "." if there is none

// $XDG_STATE_HOME/firestop, $XDG_CACHE_HOME/firestop, $XDG_CONFIG_HOME/firestop with the defaults of the
// XDG Base Directory Specification; relative values are ignored, as it says.
std::string state_directory();
std::string cache_directory();
std::string config_directory();

}  // namespace firestop
