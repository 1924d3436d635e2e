// Writes EROFS file system images (read-only; kernel Documentation/filesystems/erofs.rst and
// fs/erofs/erofs_fs.h), uncompressed, 4096-byte blocks, extended inodes. Deterministic: the same tree
// gives the same bytes. Nothing of the tree touches a host file system on the way, so owners, modes,
// non-UTF-8 names and case twins are as the caller says, and inode numbers are known beforehand.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::erofs {

struct Node;
using NodePtr = std::shared_ptr<Node>;  // shared by several names: hard links

// One inode. Exactly one of the contents applies, by the type bits of `mode`.
struct Node {
  mode_t mode = 0;  // S_IFREG, S_IFDIR, S_IFLNK, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK and permission bits
  uint32_t uid = 0, gid = 0;
  int64_t mtime = 0;  // seconds; EROFS keeps one time, the kernel shows it as mtime, ctime and atime
  uint32_t mtime_nsec = 0;
  uint32_t rdev = 0;                        // devices: (major << 8) | minor, new encoding
  std::string data;                         // S_IFLNK: target; S_IFREG: the bytes, unless `source` is set
  std::map<std::string, NodePtr> children;  // S_IFDIR; names of 1 to 255 bytes without '/' and NUL

  // S_IFREG from somewhere else: exactly `size` bytes, asked for in order when the image is written.
  uint64_t size = 0;
  std::function<Result<void>(const std::function<Result<void>(std::string_view)>& sink)> source;

  uint64_t inode_number = 0;  // set by layout(): what stat(2) shows in the guest
};

NodePtr make_directory(mode_t permissions, uint32_t uid, uint32_t gid, int64_t mtime);
NodePtr make_file(std::string data, mode_t permissions, uint32_t uid, uint32_t gid, int64_t mtime);
NodePtr make_symlink(std::string target, uint32_t uid, uint32_t gid, int64_t mtime);
// The node at `path` ("a/b"), making missing directories like `root`; an error if a file is in the way.
Result<NodePtr> directory_at(const NodePtr& root, std::string_view path);

class Writer {
 public:
  explicit Writer(NodePtr root);  // root must be a directory
  // Assigns inode numbers and places; afterwards sizes and names are fixed, bytes of `data` may still
  // change. Errors: "erofs.too_large" (2^32 blocks), "erofs.bad_name".
  Result<void> layout();
  // Writes the image from the start of `fd` (a regular file); layout() first. Zero blocks of file data
  // stay holes of the image file. A source that gives another number of bytes is an error.
  Result<void> write(int fd);
  uint64_t image_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace firestop::erofs
