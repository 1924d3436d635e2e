// Reads images that Writer made back from a file: plain and inline layouts, extended inodes, 4096-byte
// blocks. Holds one directory and one block of data at a time. Whatever the image says is checked against its
// size and the bounds below, so that a damaged one is an error ("erofs.bad_image") and not a crash or an
// endless walk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::erofs {

class Reader {
 public:
  static constexpr uint64_t kMostEntries = 8'000'000;
  static constexpr uint64_t kMostDirectory = uint64_t{256} << 20;  // bytes of one directory
  static constexpr unsigned kMostDepth = 300;

  static Result<Reader> open(UniqueFd image);

  struct File {
    std::string path;  // from the root: "/usr/bin/dash"
    uint16_t mode = 0;
    uint64_t size = 0;
    uint64_t nid = 0;  // the same for all names of one file
  };
  // Every name of every regular file, a directory's in order of bytes. Ends with the first error of `take`.
  Result<void> each_file(const std::function<Result<void>(const File&)>& take) const;
  // The bytes of a file, in order.
  Result<void> read(const File& file, const std::function<Result<void>(std::string_view)>& sink) const;

 private:
  struct Inode;
  explicit Reader(UniqueFd image) : image_(std::move(image)) {}
  Result<void> bytes_at(uint64_t offset, char* into, size_t size) const;
  Result<Inode> inode_at(uint64_t nid) const;
  Result<void> data_of(const Inode& inode, const std::function<Result<void>(std::string_view)>& sink) const;

  UniqueFd image_;
  uint64_t size_ = 0, meta_ = 0, root_ = 0;
};

}  // namespace firestop::erofs
