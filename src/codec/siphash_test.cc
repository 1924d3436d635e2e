#include "codec/siphash.h"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <cstring>
#include <memory>
#include <string>

namespace firestop::codec {
namespace {

SipHash by_openssl(const SipKey& key, std::string_view bytes) {
  const std::unique_ptr<EVP_MAC, void (*)(EVP_MAC*)> mac(EVP_MAC_fetch(nullptr, "SIPHASH", nullptr),
                                                         EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)> context(EVP_MAC_CTX_new(mac.get()),
                                                                     EVP_MAC_CTX_free);
  size_t size = 16;
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                   OSSL_PARAM_construct_end()};
  unsigned char raw[16], out[16];
  std::memcpy(raw, key.data(), sizeof raw);
  EXPECT_EQ(EVP_MAC_init(context.get(), raw, sizeof raw, parameters), 1);
  EXPECT_EQ(EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()),
            1);
  EXPECT_EQ(EVP_MAC_final(context.get(), out, &size, sizeof out), 1);
  SipHash hash{};
  std::memcpy(hash.data(), out, sizeof out);
  return hash;
}

TEST(SipHashTest, IsOpenSslsAtEveryLength) {
  const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(siphash(key, bytes), by_openssl(key, bytes)) << i;
    bytes += static_cast<char>(i * 7);
  }
}

TEST(SipHashTest, AnotherKeyIsAnotherHash) {
  EXPECT_NE(siphash({1, 2}, "x"), siphash({1, 3}, "x"));
  EXPECT_NE(siphash({1, 2}, "x"), siphash({2, 2}, "x"));
}

}  // namespace
}  // namespace firestop::codec
