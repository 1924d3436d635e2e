// Finds texts in a stream however they are written: as they are, with escapes of one or two levels mixed in
// as anybody likes (unescape.h), with white space, line ends or NUL between their characters. Says where in
// the stream they stand.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "credentials/matcher.h"
#include "credentials/unescape.h"

namespace firestop::credentials {

class Finder {
 public:
  struct Hit {
    int text = Matcher::kNone;
    uint64_t begin = 0, end = 0;  // offsets in the stream
  };
  // Whether the beginning of an escape alone is held back: yes where nothing may slip through, no where a
  // stream would stall on a '%' at the end of a message.
  enum class Hold { kEscapes, kTextsOnly };

  Finder(std::shared_ptr<const Matcher> matcher, Hold hold);

  // Hits in the order of their ends; one occurrence may be several hits.
  void feed(std::string_view bytes, std::vector<Hit>& hits);
  void finish(std::vector<Hit>& hits);
  // From where on the stream may still become a hit; what stands before is settled.
  uint64_t held_from() const;
  uint64_t position() const { return position_; }
  void reset();

 private:
  struct View {
    Matcher::State state = Matcher::kStart;
    std::vector<uint64_t> begins;  // of the last bytes that it took, a ring
    uint64_t count = 0;
    Unescape unescape;  // that makes its bytes
  };
  void feed_one(char c, std::vector<Hit>& hits);
  void take(View& view, const Unit& unit, std::vector<Hit>& hits);
  // Nothing of what came before counts for what comes.
  bool idle() const {
    return plain_ == Matcher::kStart && first_.state == Matcher::kStart && second_.state == Matcher::kStart &&
           !first_.unescape.waits() && !second_.unescape.waits();
  }
  void take_first(const Unit& unit, std::vector<Hit>& hits);

  std::shared_ptr<const Matcher> matcher_;
  Hold hold_;
  uint64_t position_ = 0;
  Matcher::State plain_ = Matcher::kStart;
  View first_, second_;  // one level of escapes undone, two
  uint64_t ring_mask_ = 0;
};

}  // namespace firestop::credentials
