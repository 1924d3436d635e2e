#include "codec/sha256.h"

#include <gtest/gtest.h>

#include "base/digest.h"

namespace firestop::codec {
namespace {

// OpenSSL is the second opinion.
TEST(PlainSha256, IsWhatOpenSslComputesForEveryLengthAroundABlock) {
  std::string text;
  for (size_t size = 0; size < 300; ++size) {
    PlainSha256 hash;
    hash.update(text);
    EXPECT_EQ(hash.hex(), sha256_hex(text)) << size;
    text += static_cast<char>(size * 7);
  }
}

TEST(PlainSha256, DoesNotCareHowTheBytesAreCut) {
  std::string text;
  for (size_t i = 0; i < 100'000; ++i) text += static_cast<char>(i * i >> 3);
  for (const size_t cut : {1u, 7u, 63u, 64u, 65u, 4096u}) {
    PlainSha256 hash;
    for (size_t at = 0; at < text.size(); at += cut) hash.update(std::string_view(text).substr(at, cut));
    EXPECT_EQ(hash.hex(), sha256_hex(text)) << cut;
  }
}

}  // namespace
}  // namespace firestop::codec
