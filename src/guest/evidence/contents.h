// The bytes of what was run: each told once, however often it runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "codec/siphash.h"
#include "guest/evidence/teller.h"

namespace firestop::guest {

struct Captured {
  uint32_t content = 0;  // 0: could not be had
  std::string note;      // why, or what of it is missing
};

class Contents {
 public:
  explicit Contents(Teller& teller) : teller_(teller) {}

  // When a run begins: machines that come from one snapshot share all that was chosen before.
  Result<void> choose_key();
  // Of an open file. It is read each time: nothing that the kernel says of a file tells whether somebody has
  // written to it through shared memory.
  // At most `most` bytes of it, and kMostContent.
  Captured of_file(int fd, uint64_t size, uint64_t most);
  Captured of_bytes(std::string_view bytes);

 private:
  static constexpr size_t kMostKnown = 1u << 16;  // what is forgotten is told again
  uint32_t tell(std::string_view bytes, uint64_t size);

  Teller& teller_;
  codec::SipKey key_{};
  std::map<std::pair<codec::SipHash, uint64_t>, uint32_t> known_;  // by size, too
};

}  // namespace firestop::guest
