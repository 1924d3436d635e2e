#include "codec/base64.h"

#include <cstdint>

namespace firestop::codec {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// 0..63, or -1
int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    std::string_view group = bytes.substr(i, 3);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < group.size() ? static_cast<uint8_t>(group[j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      out.push_back(j <= group.size() ? kAlphabet[bits >> (18 - 6 * j) & 63] : '=');
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    std::string_view group = text.substr(i, 4);
    size_t digits = 4;
    if (i + 4 == text.size()) {
      if (group[3] == '=') digits = 3;
      if (group[2] == '=' && digits == 3) digits = 2;
    }
    uint32_t bits = 0;
    for (size_t j = 0; j < 4; ++j) {
      int value = j < digits ? digit(group[j]) : 0;
      if (value < 0) return std::nullopt;
      bits = bits << 6 | static_cast<uint32_t>(value);
    }
    if ((digits == 3 && (bits & 0xff)) || (digits == 2 && (bits & 0xffff))) return std::nullopt;
    for (size_t j = 0; j + 1 < digits; ++j) out.push_back(static_cast<char>(bits >> (16 - 8 * j) & 0xff));
  }
  return out;
}

}  // namespace firestop::codec
