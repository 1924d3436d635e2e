#include "credentials/prefilter.h"

#include <algorithm>
#include <string>

#include "credentials/unescape.h"

#if defined(__x86_64__)
#include <tmmintrin.h>
#endif

namespace firestop::credentials {
namespace {

constexpr size_t kBlock = 16;
// Bits: of the texts; a text's first byte and then an escape; an escape; a \u.
constexpr size_t kTextGroups = 5;
constexpr uint8_t kThenEscape = 1 << 5, kEscape = 1 << 6, kCodePoint = 1 << 7;
constexpr std::string_view kSpecial = "%\\&";
constexpr std::string_view kBlanks("\0\t\n\r ", 5);

using Set = std::array<uint8_t, 256>;

void add(Set& set, std::string_view bytes, uint8_t group) {
  for (const char c : bytes) set[static_cast<unsigned char>(c)] |= group;
}

void add_all(Set& set, uint8_t group) {
  for (auto& groups : set) groups |= group;
}

bool has(const Set& set, char c) {
  return set[static_cast<unsigned char>(c)] != 0;
}

}  // namespace

Prefilter::Prefilter(const std::vector<std::string_view>& texts) {
  std::vector<std::string_view> beginnings;
  for (const auto text : texts) {
    beginnings.push_back(text.substr(0, kLooks));
    shortest_ = std::min(shortest_, text.size());
  }
  // Neighbours in one group: the fewer bytes a group has at a place, the less it finds that is nothing.
  std::sort(beginnings.begin(), beginnings.end());
  beginnings.erase(std::unique(beginnings.begin(), beginnings.end()), beginnings.end());
  Set firsts{};
  for (size_t at = 0; at < beginnings.size(); ++at) {
    add(firsts, beginnings[at].substr(0, 1), 1);
    add_text(beginnings[at], static_cast<uint8_t>(1u << (at * kTextGroups / beginnings.size())));
  }
  if (!beginnings.empty()) add_escapes(firsts);
  for (size_t look = 0; look < kLooks; ++look)
    for (size_t byte = 0; byte < looks_[look].size(); ++byte) {
      halves_[look].low[byte & 15] |= looks_[look][byte];
      halves_[look].high[byte >> 4] |= looks_[look][byte];
    }
#if defined(__x86_64__)
  wide_ = __builtin_cpu_supports("ssse3") != 0;
#endif
}

// Blanks between its bytes are passed over, so the third byte may still be its second.
void Prefilter::add_text(std::string_view text, uint8_t group) {
  add(looks_[0], text.substr(0, 1), group | kThenEscape);
  add(looks_[1], kBlanks, group);
  add(looks_[2], kBlanks, group);
  add(looks_[2], kSpecial, group);
  if (text.size() < 2) add_all(looks_[1], group);
  if (text.size() < kLooks) add_all(looks_[2], group);
  add(looks_[1], text.substr(1, 1), group);
  add(looks_[2], text.substr(1, 2), group);
}

// An escape that may mean the first byte of a text, or the first of another escape (unescape.h).
void Prefilter::add_escapes(const Set& firsts) {
  Set wanted = firsts;
  add(wanted, kSpecial, 1);
  add(looks_[1], kSpecial, kThenEscape | kEscape);
  add_all(looks_[2], kThenEscape | kEscape);
  add(looks_[0], kSpecial, kEscape);
  constexpr std::string_view kLower = "0123456789abcdef", kUpper = "0123456789ABCDEF";
  for (size_t byte = 0; byte < wanted.size(); ++byte)
    if (wanted[byte] != 0)
      for (const auto digits : {kLower, kUpper}) add(looks_[1], digits.substr(byte >> 4, 1), kEscape);
  add(looks_[1], "x#algq", kEscape);  // \x, &#, and the names behind '&'
  for (const auto& [name, meaning] : Unescape::kBehindBackslash)
    if (has(wanted, meaning)) add(looks_[1], {&name, 1}, kEscape);

  add(looks_[0], "\\", kCodePoint);
  add(looks_[1], "u", kCodePoint);
  add(looks_[2], "0", kCodePoint);
  add(looks_[2], kSpecial, kCodePoint);
  // What is beyond ASCII has such bytes, and half of a pair is read as '?'.
  const bool any = has(firsts, '?') || std::any_of(firsts.begin() + 0x80, firsts.end(),
                                                   [](uint8_t is_first) { return is_first != 0; });
  if (any) add_all(looks_[2], kCodePoint);
}

size_t Prefilter::find(std::string_view bytes, size_t from) const {
  return find_one_by_one(bytes, wide_ ? pass_blocks(bytes, from) : from);
}

size_t Prefilter::find_one_by_one(std::string_view bytes, size_t from) const {
  size_t at = from;
  for (; at + kLooks <= bytes.size(); ++at)
    if (may_begin(bytes, at)) return at;
  for (; at < bytes.size(); ++at)
    if (has(looks_[0], bytes[at])) return at;
  return bytes.size();
}

bool Prefilter::may_have(std::string_view bytes) const {
  if (bytes.size() < shortest_) return false;
  const size_t at = find(bytes, 0);
  return at < bytes.size() && (shortest_ < kLooks || at + kLooks <= bytes.size());
}

#if defined(__x86_64__)

// Up to a place that may_begin(), or to where less than a block is left.
__attribute__((target("ssse3"))) size_t Prefilter::pass_blocks(std::string_view bytes, size_t at) const {
  // SAFETY: what unaligned loads are for; each reads 16 bytes that are there.
  const auto load = [](const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); };
  __m128i low[kLooks], high[kLooks];
  for (size_t look = 0; look < kLooks; ++look) {
    low[look] = load(halves_[look].low.data());
    high[look] = load(halves_[look].high.data());
  }
  const __m128i nibble = _mm_set1_epi8(0x0f), none = _mm_setzero_si128();
  for (; at + kBlock + kLooks - 1 <= bytes.size(); at += kBlock) {
    __m128i groups = _mm_set1_epi8(-1);
    for (size_t look = 0; look < kLooks; ++look) {
      const __m128i block = load(bytes.data() + at + look);
      const __m128i by_low = _mm_shuffle_epi8(low[look], _mm_and_si128(block, nibble));
      const __m128i by_high = _mm_shuffle_epi8(high[look], _mm_and_si128(_mm_srli_epi16(block, 4), nibble));
      groups = _mm_and_si128(groups, _mm_and_si128(by_low, by_high));
    }
    auto maybe = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(groups, none))) ^ 0xffffu;
    for (; maybe != 0; maybe &= maybe - 1) {
      const size_t place = at + static_cast<size_t>(__builtin_ctz(maybe));
      if (may_begin(bytes, place)) return place;
    }
  }
  return at;
}

#else

size_t Prefilter::pass_blocks(std::string_view, size_t at) const {
  return at;
}

#endif

}  // namespace firestop::credentials
