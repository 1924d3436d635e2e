// For tests only: reads an EROFS image back, written from the format's description and sharing nothing
// with the writer. Understands what the kernel understands of plain and inline layouts, looks names up by
// binary search as the kernel does, and throws std::runtime_error on anything odd.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace firestop::erofs::testing {

struct ReadInode {
  uint64_t nid = 0;
  uint16_t mode = 0;
  uint32_t uid = 0, gid = 0, links = 0, rdev = 0;
  int64_t mtime = 0;
  uint32_t mtime_nsec = 0;
  std::string data;                         // content or link target
  std::map<std::string, uint64_t> entries;  // directories, without "." and ".."
};

class ImageReader {
 public:
  explicit ImageReader(std::string image);
  uint64_t root() const { return root_; }
  uint64_t inode_count() const { return inodes_; }
  ReadInode inode(uint64_t nid) const;
  // The node id that the kernel's two binary searches find, or 0.
  uint64_t lookup(uint64_t directory, const std::string& name) const;
  // "path" -> inode for the whole tree; the root is "".
  std::map<std::string, ReadInode> everything() const;

 private:
  template <typename T>
  T at(uint64_t offset) const;
  std::string raw_data(uint64_t nid) const;

  std::string image_;
  uint64_t root_ = 0, meta_ = 0, inodes_ = 0;
};

}  // namespace firestop::erofs::testing
