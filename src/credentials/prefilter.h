// Passes over bytes where no text can begin, sixteen at a time where the processor can (SSSE3): most of a
// body is such bytes, and the finder's own way looks at each of them three times. Three bytes in a row
// decide: a text's first, and behind it what may follow in the text, a blank, or an escape. Wrong in one
// direction only: the characters of an escape that is passed over count as themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace firestop::credentials {

class Prefilter {
 public:
  explicit Prefilter(const std::vector<std::string_view>& texts);

  // The first place from `from` on where a text may begin, as it is or written as the finder reads it; the
  // size of `bytes` if there is none. In the last two bytes that is wherever a text's first byte or an escape
  // stands.
  size_t find(std::string_view bytes, size_t from) const;
  // The same without the processor's help.
  size_t find_one_by_one(std::string_view bytes, size_t from) const;
  // Whether a whole text may stand in there.
  bool may_have(std::string_view bytes) const;

 private:
  static constexpr size_t kLooks = 3;  // bytes
  using Set = std::array<uint8_t, 256>;
  struct Halves {
    alignas(16) std::array<uint8_t, 16> low{}, high{};
  };
  void add_text(std::string_view text, uint8_t group);
  void add_escapes(const Set& firsts);
  bool may_begin(std::string_view bytes, size_t at) const {
    const auto in = [&](size_t look) { return looks_[look][static_cast<unsigned char>(bytes[at + look])]; };
    return (in(0) & in(1) & in(2)) != 0;
  }
  size_t pass_blocks(std::string_view bytes, size_t at) const;

  // For each place, the groups (a bit each) that have this byte there: of texts, and of escapes.
  std::array<Set, kLooks> looks_{};
  // The same by halves of a byte, for a shuffle as the look-up: a group seems to have what it has in both.
  std::array<Halves, kLooks> halves_{};
  size_t shortest_ = SIZE_MAX;
  bool wide_ = false;
};

}  // namespace firestop::credentials
