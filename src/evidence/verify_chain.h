// Whether events stand in their order, each once, each hashed by the next; and if not, which is to blame.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "evidence/event.h"
#include "evidence/findings.h"

namespace firestop::evidence {

// A line of events.jsonl.
struct ReadEvent {
  enum class Kind { kEvent, kBad, kHalf, kEnd };
  Kind kind = Kind::kEnd;
  Event event;
  std::string hash;  // of the line
  uint64_t line = 0;
  std::string why;  // kBad

  bool is(uint64_t seq) const { return kind == Kind::kEvent && event.seq == seq; }
};

class ChainCheck {
 public:
  explicit ChainCheck(Findings& findings) : findings_(findings) {}
  // Each kEvent and kBad in turn, with the one after it.
  void take(const ReadEvent& read, const ReadEvent& next);
  void end();
  uint64_t expected() const { return expected_; }  // the sequence number that comes next
  // Nothing is known to be amiss that end() has yet to say.
  bool clean() const { return missed_.empty() && early_.empty() && !suspect_; }

 private:
  // The number of its place.
  uint64_t place(const ReadEvent& read, const ReadEvent& next);
  void link(const ReadEvent& read, const ReadEvent& next, uint64_t number);
  void out_of_order(const ReadEvent& read);
  void miss(uint64_t first, uint64_t last);
  bool was_missed(uint64_t seq);  // and is no more

  Findings& findings_;
  uint64_t expected_ = 0;
  std::map<uint64_t, uint64_t> missed_;  // first to last, bounded
  std::set<uint64_t> early_;             // came before their place, bounded
  bool first_ = true;
  std::optional<uint64_t> previous_;  // of the line before, if it was an event
  std::string previous_hash_;
  std::optional<uint64_t> suspect_;
};

}  // namespace firestop::evidence
