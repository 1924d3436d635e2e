#include "codec/siphash.h"

#include <bit>
#include <cstring>

namespace firestop::codec {
namespace {

static_assert(std::endian::native == std::endian::little);

struct State {
  uint64_t a, b, c, d;

  void round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }
  void take(uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
  uint64_t end() {
    for (int i = 0; i < 4; ++i) round();
    return a ^ b ^ c ^ d;
  }
};

}  // namespace

SipHash siphash(const SipKey& key, std::string_view bytes) {
  State state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d ^ 0xee, key[0] ^ 0x6c7967656e657261,
              key[1] ^ 0x7465646279746573};
  const auto length = static_cast<uint64_t>(bytes.size());
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    state.take(word);
  }
  uint64_t last = 0;
  if (!bytes.empty()) std::memcpy(&last, bytes.data(), bytes.size());
  state.take(last | length << 56);
  state.c ^= 0xee;
  SipHash out{};
  out[0] = state.end();
  state.b ^= 0xdd;
  out[1] = state.end();
  return out;
}

}  // namespace firestop::codec
