// The bytes of what was run: each told once, however often it runs.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "guest/evidence/teller.h"

namespace firestop::guest {

struct Captured {
  uint32_t content = 0;  // 0: could not be had
  std::string note;      // why, or what of it is missing
};

class Contents {
 public:
  explicit Contents(Teller& teller) : teller_(teller) {}

  // Of an open file. A file that is as it was is not read again: device, inode, change time and size, with
  // the change some ticks before it was read, since the clock of change times is coarse.
  Captured of_file(int fd, const struct stat& what);
  Captured of_bytes(std::string_view bytes);
  // Somebody closed it after writing.
  void changed(const struct stat& what);

 private:
  using Inode = std::pair<uint64_t, uint64_t>;
  struct Known {
    int64_t changed_ns = 0;
    uint64_t size = 0;
    Captured captured;
  };
  static constexpr size_t kMostKnown = 1u << 16;  // files, and digests: what is forgotten is told again
  uint32_t tell(std::string_view bytes, uint64_t size);

  Teller& teller_;
  std::map<Inode, Known> files_;
  std::unordered_map<std::string, uint32_t> digests_;
};

}  // namespace firestop::guest
