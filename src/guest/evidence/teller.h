// The collectors' end of the port "firestop.1": observations and contents as frames.
//
// Nothing is dropped here. When the host takes less than is told, the container is frozen (cgroup.freeze)
// until it has taken enough: overload holds up the agent, and the memory used here stays bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "channel/observation.h"

namespace firestop::guest {

class Teller {
 public:
  static Result<Teller> open();

  // An observation that cannot be told (a value beyond its range) is counted.
  void say(const channel::observed::Observation& observation);
  // `bytes` of something that has `size` bytes; its number. Sends as it goes, so that little is held.
  uint32_t say_content(std::string_view bytes, uint64_t size);

  int fd() const { return port_.get(); }
  size_t held() const { return pending_.size() - written_; }  // bytes not written yet
  bool stuck() const { return stuck_; }                       // the host takes no more for now
  // Writes what can be written without waiting; waits, with the container frozen, while too much is held.
  void settle() { settle_below(kMost); }
  // Waits until all is written.
  void finish() { settle_below(1); }
  // The host's end is gone, or the port broke: nothing more can be told.
  bool broken() const { return broken_; }
  uint64_t take_untold();

 private:
  static constexpr size_t kMost = 1u << 20;
  void write_some();
  void settle_below(size_t bytes);

  UniqueFd port_;
  std::string pending_;
  size_t written_ = 0;  // of pending_
  uint32_t contents_ = 0;
  uint64_t untold_ = 0;
  bool broken_ = false, stuck_ = false;
};

}  // namespace firestop::guest
