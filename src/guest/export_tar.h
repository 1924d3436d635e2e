// A pax archive (POSIX.1-2017, pax Interchange Format), written as it goes to a sink with a fixed buffer.
// Names are bytes (hdrcharset=BINARY), times have nanoseconds, owners are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::guest {

struct TarMember {
  enum class Type : char { kFile = '0', kLink = '2', kDirectory = '5' };
  Type type{};
  std::string path;    // relative, no trailing slash
  std::string target;  // of a link
  uint32_t mode = 0;   // the nine permission bits
  uint64_t size = 0;   // of a file
  int64_t mtime = 0;
  uint32_t mtime_nsec = 0;
};

class TarWriter {
 public:
  explicit TarWriter(std::function<Result<void>(std::string_view)> sink) : sink_(std::move(sink)) {}
  // After a file's header exactly `size` bytes must follow by data().
  Result<void> begin(const TarMember& member);
  Result<void> data(std::string_view bytes);
  // Zeros up to the member's size, if the file was shorter than it said.
  Result<void> pad_member();
  // The archive's end.
  Result<void> finish();

 private:
  Result<void> put(std::string_view bytes);
  Result<void> put_zeros(uint64_t count);
  Result<void> put_header(char type, const std::string& name, uint64_t size, const TarMember& member);

  std::function<Result<void>(std::string_view)> sink_;
  std::string buffer_;
  uint64_t member_left_ = 0, member_tail_ = 0;
};

}  // namespace firestop::guest
