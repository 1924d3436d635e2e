// Small files, whole. All descriptors are close-on-exec; symbolic links are followed as the kernel does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace firestop {

// The file's bytes; an error ("file.too_large") beyond `limit` bytes.
Result<std::string> read_file(const std::string& path, uint64_t limit = 64u << 20);
// Everything up to end of file; an error beyond `limit` bytes.
Result<std::string> read_all(int fd, uint64_t limit = 64u << 20);
// All of `data`, restarting after short writes and EINTR.
Result<void> write_all(int fd, std::string_view data);
// Writes beside `path`, fsyncs, renames over it: readers see the old bytes or the new ones.
Result<void> write_file_atomic(const std::string& path, std::string_view data, mode_t mode = 0600);
// mkdir -p; directories made here get `mode`.
Result<void> make_directories(const std::string& path, mode_t mode = 0700);
// rm -rf that does not follow links and does not cross into what it cannot open. Missing is fine.
Result<void> remove_tree(const std::string& path);
Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0600);
// Copies a file's data extents; holes stay holes (SEEK_DATA). The new file must not exist.
Result<void> copy_sparse(const std::string& from, const std::string& to, mode_t mode = 0600);
bool exists(const std::string& path);

}  // namespace firestop
