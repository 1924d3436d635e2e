// SHA-256 (FIPS 180-4) without a library, for the guest; the host uses base/digest.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace firestop::codec {

class PlainSha256 {
 public:
  void update(std::string_view data);
  std::string digest();  // 32 bytes; ends the computation
  std::string hex();     // the same, as 64 lower-case digits

 private:
  void block(const unsigned char* bytes);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};
  size_t held_ = 0;     // bytes in rest_
  uint64_t total_ = 0;  // bytes
};

}  // namespace firestop::codec
