// A time limit that is moved often and rarely reached: moving it later costs no timer.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "base/loop.h"

namespace firestop::http {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Loop& loop, std::function<void()> reached = {})
      : loop_(loop), reached_(std::move(reached)) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void set(std::chrono::milliseconds in) {
    at_ = Clock::now() + in;
    if (!timer_ || at_ < fires_) arm();
  }
  void on_reached(std::function<void()> reached) { reached_ = std::move(reached); }
  bool is_set() const { return at_ != Clock::time_point::max(); }
  void clear() { at_ = Clock::time_point::max(); }

 private:
  void arm() {
    fires_ = at_;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now());
    timer_ = loop_.once(left, [this] {
      const auto fired = std::move(timer_);
      if (at_ == Clock::time_point::max()) return;
      if (Clock::now() < at_) return arm();
      clear();
      reached_();
    });
  }

  Loop& loop_;
  std::function<void()> reached_;  // must not destroy the deadline
  Clock::time_point at_ = Clock::time_point::max(), fires_;
  Loop::Handle timer_;
};

}  // namespace firestop::http
