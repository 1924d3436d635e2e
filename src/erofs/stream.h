// Bytes to rising offsets of a file, gathered into large writes; blocks of zeros become holes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::erofs {

class Stream {
 public:
  // `offset` is a multiple of the block size. The file must read as zeros where nothing is written.
  Stream(int fd, uint64_t offset) : fd_(fd), offset_(offset) {}
  uint64_t position() const { return offset_ + buffer_.size(); }
  Result<void> append(std::string_view data);
  // Zeros up to `position`, which is not behind the present one.
  Result<void> pad_to(uint64_t position);
  Result<void> finish();

 private:
  Result<void> flush(size_t bytes);

  int fd_;
  uint64_t offset_;  // of buffer_[0]; a multiple of the block size
  std::string buffer_;
};

}  // namespace firestop::erofs
