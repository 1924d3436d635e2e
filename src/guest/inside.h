// Paths inside the container's root, as PID 1 handles them: symbolic links of the image lead to where they
// would lead inside, never to PID 1's own files (openat2(2), RESOLVE_IN_ROOT).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

struct Owner {
  uint32_t uid = 0, gid = 0;
};

class Inside {
 public:
  // `root` is a directory of PID 1's that exists.
  static Result<Inside> open(const std::string& root);

  // `path` is relative to the root or absolute; both mean the same.
  Result<UniqueFd> open_at(const std::string& path, int flags, mode_t mode = 0) const;
  bool exists(const std::string& path) const;
  // The file's bytes, or an empty string when there is none; at most 1 MiB.
  Result<std::string> read(const std::string& path) const;
  // Replaces the file's bytes; made with `mode`, its directory must exist.
  Result<void> write(const std::string& path, std::string_view data, mode_t mode) const;
  // mkdir -p; what is made here gets `owner` and 0755. Links on the way are refused, since something will be
  // mounted there. Returns the directory (O_PATH).
  Result<UniqueFd> make_directories(const std::string& path, Owner owner) const;

 private:
  UniqueFd root_;
};

// How to name an open file in a call that wants a path.
std::string path_of(const UniqueFd& fd);

}  // namespace firestop::guest
