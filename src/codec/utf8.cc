#include "codec/utf8.h"

#include <algorithm>

namespace firestop::codec {
namespace {

constexpr char32_t kReplacement = 0xfffd;

bool is_deceptive(char32_t c) {
  if (c == '\n' || c == '\t') return false;
  if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return true;
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

}  // namespace

size_t decode_utf8(std::string_view text, char32_t& out) {
  if (text.empty()) return 0;
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) {
    out = lead;
    return 1;
  }
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  char32_t value = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    value = value << 6 | (next & 0x3fu);
  }
  if (length == 3 && (value < 0x800 || (value >= 0xd800 && value < 0xe000))) return 0;
  if (length == 4 && (value < 0x10000 || value > 0x10ffff)) return 0;
  out = value;
  return length;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
    return;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out.push_back(static_cast<char>(kLead[more] | c >> (6 * more)));
  while (more-- > 0) out.push_back(static_cast<char>(0x80u | (c >> (6 * more) & 0x3fu)));
}

bool is_utf8(std::string_view text) {
  char32_t ignored;
  while (!text.empty()) {
    size_t length = decode_utf8(text, ignored);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    char32_t c = kReplacement;
    size_t length = decode_utf8(text, c);
    if (length == 0 || is_deceptive(c)) c = kReplacement;
    size_t before = out.size();
    append_utf8(out, c);
    if (out.size() > max_bytes) {
      out.resize(before);
      break;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace firestop::codec
