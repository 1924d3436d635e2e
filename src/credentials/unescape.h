// Undoes one level of escapes in a stream and remembers where each byte came from: %41, A, \x41, \/, &#65;,
// &#x41;, &amp;. What is no escape passes as it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace firestop::credentials {

// A byte, and the bytes of the stream that it was written with: [begin, end).
struct Unit {
  char byte = 0;
  uint64_t begin = 0, end = 0;
};

class Unescape {
 public:
  static bool is_special(char c) { return c == '%' || c == '\\' || c == '&'; }
  // Escapes of a backslash and one character: that, and what it means.
  struct Named {
    char name, meaning;
  };
  static constexpr Named kBehindBackslash[] = {{'/', '/'},   {'\\', '\\'}, {'"', '"'},
                                               {'\'', '\''}, {'n', '\n'},  {'r', '\r'},
                                               {'t', '\t'},  {'b', '\b'},  {'f', '\f'}};

  template <typename Sink>
  void feed(const Unit& unit, Sink&& sink) {
    if (count_ == 0 && !is_special(unit.byte)) [[likely]] {
      sink(unit);
      return;
    }
    pending_[count_++] = unit;
    settle(sink);
  }
  // At the stream's end: what was begun is no escape.
  template <typename Sink>
  void finish(Sink&& sink) {
    while (count_ > 0) give_up(sink);
  }
  bool waits() const { return count_ > 0; }
  uint64_t waits_from() const { return pending_[0].begin; }

 private:
  static constexpr size_t kMostPending = 10;  // "&#x10FFFF;"
  enum class Kind { kMore, kEscape, kNone };
  struct Reading {
    Kind kind = Kind::kNone;
    std::array<char, 4> bytes{};  // UTF-8
    size_t count = 0;
  };
  Reading read() const;

  template <typename Sink>
  void settle(Sink&& sink) {
    while (count_ > 0) {
      if (!is_special(pending_[0].byte)) {
        shift_one(sink);
        continue;
      }
      const Reading reading = read();
      if (reading.kind == Kind::kMore) return;
      if (reading.kind == Kind::kNone) {
        shift_one(sink);
        continue;
      }
      const uint64_t begin = pending_[0].begin, end = pending_[count_ - 1].end;
      count_ = 0;
      for (size_t at = 0; at < reading.count; ++at) sink(Unit{reading.bytes[at], begin, end});
    }
  }

  template <typename Sink>
  void shift_one(Sink&& sink) {
    const Unit first = pending_[0];
    for (size_t at = 1; at < count_; ++at) pending_[at - 1] = pending_[at];
    --count_;
    sink(first);
  }

  // The first byte is none of an escape; the rest may begin another.
  template <typename Sink>
  void give_up(Sink&& sink) {
    shift_one(sink);
    settle(sink);
  }

  std::array<Unit, kMostPending> pending_{};
  size_t count_ = 0;
};

}  // namespace firestop::credentials
