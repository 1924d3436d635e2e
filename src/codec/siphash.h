// SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012): tells bytes apart for those who keep its key,
// some seven times faster than SHA-256 does. Who does not know the key cannot make two texts that look the
// same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace firestop::codec {

using SipKey = std::array<uint64_t, 2>;
using SipHash = std::array<uint64_t, 2>;

SipHash siphash(const SipKey& key, std::string_view bytes);

}  // namespace firestop::codec
