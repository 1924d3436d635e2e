// Frames that cost the other side nothing and us something: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty
// DATA, resets of either side (CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2025-8671). Each takes from a
// budget that time and bytes of real data refill; who has used it up is not served on. nghttp2 1.52 has no
// such limit of its own.
#pragma once

#include <chrono>
#include <cstddef>

namespace firestop::http {

class H2Abuse {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr double kBudget = 2000;        // frames
  static constexpr double kRefill = 200;         // a second
  static constexpr double kBytesOfFrame = 4096;  // data that earns one frame
  static constexpr double kCostOfReset = 10;     // a stream opened and reset makes work at the origin

  explicit H2Abuse(Clock::time_point now) : since_(now) {}

  // Each false when the budget is used up.
  bool idle_frame(Clock::time_point now) { return take(1, now); }
  bool reset(Clock::time_point now) { return take(kCostOfReset, now); }
  void data(size_t bytes) { add(static_cast<double>(bytes) / kBytesOfFrame); }

 private:
  bool take(double cost, Clock::time_point now) {
    add(std::chrono::duration<double>(now - since_).count() * kRefill);
    since_ = now;
    left_ -= cost;
    return left_ >= 0;
  }
  void add(double more) { left_ = left_ + more > kBudget ? kBudget : left_ + more; }

  double left_ = kBudget;
  Clock::time_point since_;
};

}  // namespace firestop::http
