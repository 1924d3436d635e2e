#include "codec/java_trust.h"

#include <array>
#include <bit>
#include <cstdint>

#include "codec/base64.h"

namespace firestop::codec {
namespace {

constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
constexpr uint32_t kMagic = 0xFEEDFEED;
constexpr uint32_t kVersion = 2;
constexpr uint32_t kTrustedCertificate = 2;
// What the digest begins with, in this order: the password in UTF-16, then these words.
constexpr std::string_view kPassword = "changeit";
constexpr std::string_view kWords = "Mighty Aphrodite";

void append_be(std::string& out, uint64_t value, int bytes) {
  for (int at = bytes - 1; at >= 0; --at) out += static_cast<char>(value >> (8 * at) & 0xff);
}

void append_text(std::string& out, std::string_view text) {
  append_be(out, text.size(), 2);
  out += text;
}

// SHA-1 (FIPS 180-4): a checksum of this format, no seal.
class Sha1 {
 public:
  static std::string of(std::string message) {
    const uint64_t bits = message.size() * 8;
    message += static_cast<char>(0x80);
    message.resize((message.size() + 8 + 63) / 64 * 64 - 8, '\0');
    append_be(message, bits, 8);
    Sha1 sha;
    for (size_t at = 0; at < message.size(); at += 64) sha.block(std::string_view(message).substr(at, 64));
    std::string out;
    for (const uint32_t word : sha.state_) append_be(out, word, 4);
    return out;
  }

 private:
  void block(std::string_view bytes) {
    std::array<uint32_t, 80> words{};
    for (size_t i = 0; i < 64; ++i) words[i / 4] = words[i / 4] << 8 | static_cast<uint8_t>(bytes[i]);
    for (size_t i = 16; i < 80; ++i)
      words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    auto [a, b, c, d, e] = state_;
    for (size_t i = 0; i < 80; ++i) {
      const auto [mix, constant] = round(i, b, c, d);
      const uint32_t next = std::rotl(a, 5) + mix + e + constant + words[i];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    const std::array<uint32_t, 5> more{a, b, c, d, e};
    for (size_t i = 0; i < state_.size(); ++i) state_[i] += more[i];
  }

  static std::array<uint32_t, 2> round(size_t i, uint32_t b, uint32_t c, uint32_t d) {
    if (i < 20) return {(b & c) | (~b & d), 0x5A827999};
    if (i < 40) return {b ^ c ^ d, 0x6ED9EBA1};
    if (i < 60) return {(b & c) | (b & d) | (c & d), 0x8F1BBCDC};
    return {b ^ c ^ d, 0xCA62C1D6};
  }

  std::array<uint32_t, 5> state_{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
};

std::string without_space(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '\n' && c != '\r' && c != ' ' && c != '\t') out += c;
  return out;
}

}  // namespace

Result<std::string> java_trust_store(std::string_view pem) {
  std::string entries;
  uint32_t count = 0;
  for (size_t at; (at = pem.find(kBegin)) != std::string_view::npos; ++count) {
    pem.remove_prefix(at + kBegin.size());
    const size_t end = pem.find(kEnd);
    if (end == std::string_view::npos) return fail("java_trust.bad", "a certificate that does not end");
    const auto bytes = decode_base64(without_space(pem.substr(0, end)));
    if (!bytes) return fail("java_trust.bad", "a certificate that is no base64");
    append_be(entries, kTrustedCertificate, 4);
    append_text(entries, "firestop" + std::to_string(count));
    append_be(entries, 0, 8);  // when it was added: nobody asks
    append_text(entries, "X.509");
    append_be(entries, bytes->size(), 4);
    entries += *bytes;
    pem.remove_prefix(end + kEnd.size());
  }
  std::string out;
  append_be(out, kMagic, 4);
  append_be(out, kVersion, 4);
  append_be(out, count, 4);
  out += entries;
  std::string digested;
  for (const char c : kPassword) append_be(digested, static_cast<uint8_t>(c), 2);
  digested += kWords;
  digested += out;
  return out + Sha1::of(std::move(digested));
}

}  // namespace firestop::codec
