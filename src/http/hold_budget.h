// What all bodies of one process that wait together hold: for a decision, for the end of what a decision
// needs, for a side that does not take them. One alone is bounded where it waits; all of them are bounded
// here, so that what does not fit is refused and the process lives on.
#pragma once

#include <cstddef>

namespace firestop::http {

class HoldBudget {
 public:
  explicit HoldBudget(size_t most) : left_(most) {}

 private:
  friend class Held;
  size_t left_;  // bytes
};

// The part of one exchange. The budget outlives it.
class Held {
 public:
  explicit Held(HoldBudget& budget) : budget_(budget) {}
  ~Held() { budget_.left_ += bytes_; }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // It holds `bytes` now. False: that is more than is left, and it is counted as before.
  [[nodiscard]] bool set(size_t bytes) {
    const size_t may_have = budget_.left_ + bytes_;
    if (bytes > may_have) return false;
    budget_.left_ = may_have - bytes;
    bytes_ = bytes;
    return true;
  }

 private:
  HoldBudget& budget_;
  size_t bytes_ = 0;
};

}  // namespace firestop::http
