// A root file system's tar archive (ustar, GNU, pax) becomes an EROFS image. The archive is not trusted:
// it touches nothing but the image, and what cannot be meant seriously is refused.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace firestop::image {

struct ImportRules {
  // fnmatch(3) patterns over absolute paths ("/usr/share/doc/*"; '*' matches '/' too). An entry that
  // matches `remove` and not `keep` is left out, except directories: they stay, maybe empty.
  std::vector<std::string> remove, keep;
  // Files of root, mode 0644, that are put in afterwards: "etc/hosts" and its bytes.
  std::vector<std::pair<std::string, std::string>> add;

  uint64_t max_entries = 2'000'000;
  uint64_t max_bytes = 64ull << 30;  // of content
  unsigned max_depth = 256;
};

// Reads `tar_fd` (a pipe or a file) to its end and writes `image_path`, which must not exist; its folder
// also holds the contents for a while (an unnamed file). Owners, modes, times, hard links, symbolic links
// and devices are kept, extended attributes are not. Returns the image's size in bytes.
// Errors: "image.bad_archive" (absolute names, "..", a file as a directory, links to nowhere, limits).
Result<uint64_t> root_from_tar(int tar_fd, const std::string& image_path, const ImportRules& rules = {});

}  // namespace firestop::image
