// A root file system's tar archive (ustar, GNU, pax) becomes an EROFS image. The archive is not trusted:
// it touches nothing but the image, and what cannot be meant seriously is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::image {

// fnmatch(3) patterns over absolute paths ("/usr/share/doc/*"; '*' matches '/' too). An entry that
// matches `remove` and not `keep` is left out, except directories: they stay, maybe empty.
struct PathFilter {
  std::vector<std::string> remove, keep;
};

struct TarLimits {
  uint64_t entries = 2'000'000;
  uint64_t bytes = 64ull << 30;  // of content
  unsigned depth = 256;
};

// Reads `tar_fd` (a pipe or a file) to its end and writes `image_path`, which must not exist; its folder
// also holds the contents for a while (an unnamed file). Owners, modes, times, hard links, symbolic links
// and devices are kept, extended attributes are not. Returns the image's size in bytes.
// Errors: "image.bad_archive" (absolute names, "..", a file as a directory, links to nowhere, limits).
Result<uint64_t> root_from_tar(int tar_fd, const std::string& image_path, const PathFilter& filter = {},
                               const TarLimits& limits = {});

}  // namespace firestop::image
