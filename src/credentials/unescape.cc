#include "credentials/unescape.h"

#include <string>

#include "codec/utf8.h"

namespace firestop::credentials {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Digits from `at` on, `base` 10 or 16; `out` is their number. How many there are.
size_t read_digits(std::string_view text, size_t at, int base, uint32_t& out) {
  size_t count = 0;
  for (; at + count < text.size(); ++count) {
    const int value = hex_value(text[at + count]);
    if (value < 0 || value >= base || out > 0x10FFFF) break;
    out = out * static_cast<uint32_t>(base) + static_cast<uint32_t>(value);
  }
  return count;
}

struct Entity {
  std::string_view name;
  char byte;
};
constexpr Entity kEntities[] = {
    {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};

}  // namespace

// `pending_` begins with a special byte, and all before its last byte was read as kMore already.
Unescape::Reading Unescape::read() const {
  std::array<char, kMostPending> copy{};
  for (size_t at = 0; at < count_; ++at) copy[at] = pending_[at].byte;
  const std::string_view text(copy.data(), count_);
  const auto more = [] { return Reading{Kind::kMore, {}, 0}; };
  const auto none = [] { return Reading{}; };
  const auto is = [](uint32_t code) {
    Reading out{Kind::kEscape, {}, 0};
    std::string utf8;
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      utf8 = "?";
    else
      codec::append_utf8(utf8, static_cast<char32_t>(code));
    for (const char c : utf8) out.bytes[out.count++] = c;
    return out;
  };
  const auto byte = [](char c) { return Reading{Kind::kEscape, {{c}}, 1}; };
  if (text.size() == 1) return more();

  // %HH, \xHH, \uHHHH: a fixed number of digits.
  const auto fixed = [&](size_t from, size_t digits, bool code_point) {
    uint32_t value = 0;
    if (read_digits(text, from, 16, value) != text.size() - from) return none();
    if (text.size() - from < digits) return more();
    return code_point ? is(value) : byte(static_cast<char>(value));
  };
  if (text[0] == '%') return fixed(1, 2, false);
  if (text[0] == '\\') {
    if (text[1] == 'u') return fixed(2, 4, true);
    if (text[1] == 'x') return fixed(2, 2, false);
    for (const auto& [name, meaning] : kBehindBackslash)
      if (text[1] == name) return byte(meaning);
    return none();
  }
  if (text[1] == '#') {
    const bool hex = text.size() > 2 && (text[2] == 'x' || text[2] == 'X');
    const size_t from = hex ? 3 : 2;
    uint32_t value = 0;
    const size_t digits = from < text.size() ? read_digits(text, from, hex ? 16 : 10, value) : 0;
    if (from + digits >= text.size()) return text.size() < kMostPending ? more() : none();
    return digits > 0 && text[from + digits] == ';' ? is(value) : none();
  }
  for (const auto& [name, meaning] : kEntities) {
    if (text == name) return byte(meaning);
    if (name.starts_with(text)) return more();
  }
  return none();
}

}  // namespace firestop::credentials
