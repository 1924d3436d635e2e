// Finds many texts at once, one byte at a time (Aho and Corasick, 1975): one table look-up a byte, however
// many texts there are. Immutable; the caller keeps the state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "credentials/prefilter.h"

namespace firestop::credentials {

class Matcher {
 public:
  using State = uint32_t;
  static constexpr State kStart = 0;
  static constexpr int kNone = -1;

  struct Text {
    std::string bytes;     // not empty
    size_t hold_from = 1;  // from so many bytes of it on, its beginning is worth holding back
  };
  explicit Matcher(const std::vector<Text>& texts);

  State step(State state, unsigned char byte) const { return next_[state * classes_ + class_of_[byte]]; }
  // The longest text that ends here, or kNone.
  int found(State state) const { return nodes_[state].found; }
  // Bytes before here that may become one of the texts, as far as hold_from lets them count.
  uint32_t held(State state) const { return nodes_[state].held; }
  // Where in a stream there can be nothing to find.
  const Prefilter& prefilter() const { return prefilter_; }
  size_t longest() const { return longest_; }
  size_t length(int text) const { return lengths_[static_cast<size_t>(text)]; }

 private:
  struct Node {
    int found = kNone;
    uint32_t held = 0;
  };
  Prefilter prefilter_;
  std::array<uint16_t, 256> class_of_{};  // bytes that no text has are one class
  size_t classes_ = 1;
  std::vector<State> next_;
  std::vector<Node> nodes_;
  std::vector<size_t> lengths_;
  size_t longest_ = 0;
};

}  // namespace firestop::credentials
