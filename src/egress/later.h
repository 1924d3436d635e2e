// What ends from inside its own callback is destroyed a moment later, from the loop.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/loop.h"

namespace firestop::egress {

class Later {
 public:
  explicit Later(Loop& loop) : loop_(loop) {}
  template <typename T>
  void destroy(std::unique_ptr<T> gone) {
    gone_.push_back(std::shared_ptr<T>(std::move(gone)));
    if (!soon_) {
      soon_ = loop_.once(std::chrono::milliseconds(0), [this] {
        const auto done = std::move(soon_);
        const auto all = std::exchange(gone_, {});
      });
    }
  }

 private:
  Loop& loop_;
  std::vector<std::shared_ptr<void>> gone_;
  Loop::Handle soon_;
};

}  // namespace firestop::egress
