#include "erofs/stream.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "erofs/format.h"

namespace firestop::erofs {

namespace {

constexpr size_t kGather = 1u << 20;

bool all_zero(std::string_view data) {
  return data.empty() || (data[0] == '\0' && std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

Result<void> write_at(int fd, std::string_view data, uint64_t offset) {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("erofs.write", "writing a file system image");
    data.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

}  // namespace

Result<void> Stream::append(std::string_view data) {
  while (!data.empty()) {
    const size_t part = std::min(data.size(), kGather - buffer_.size());
    buffer_.append(data.substr(0, part));
    data.remove_prefix(part);
    if (buffer_.size() == kGather) TRY(flush(kGather));
  }
  return {};
}

Result<void> Stream::pad_to(uint64_t position) {
  static constexpr char kZeros[kBlock] = {};
  while (this->position() < position) {
    const uint64_t gap = position - this->position();
    TRY(append({kZeros, static_cast<size_t>(std::min(gap, kBlock))}));
  }
  return {};
}

Result<void> Stream::finish() {
  return flush(buffer_.size());
}

Result<void> Stream::flush(size_t bytes) {
  const std::string_view all(buffer_.data(), bytes);
  size_t at = 0;
  while (at < bytes) {
    if (all_zero(all.substr(at, kBlock))) {
      at += std::min<size_t>(kBlock, bytes - at);
      continue;
    }
    size_t end = at;
    while (end < bytes && !all_zero(all.substr(end, kBlock))) end += std::min<size_t>(kBlock, bytes - end);
    TRY(write_at(fd_, all.substr(at, end - at), offset_ + at));
    at = end;
  }
  buffer_.erase(0, bytes);
  offset_ += bytes;
  return {};
}

}  // namespace firestop::erofs
