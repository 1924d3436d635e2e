// Gives checkpoints to an anchor from a thread of its own, one at a time, so that nobody who records waits
// for a command, a git repository, or a disk far away.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "evidence/anchor.h"

namespace firestop::evidence {

// Above kMostAnchorTime, by which commands and git are ended: what is left then is a file that does not sync.
inline constexpr std::chrono::milliseconds kMostAnchorWait{15000};

class AnchorThread {
 public:
  // `anchor` is called on the thread only; it must own what it touches.
  explicit AnchorThread(Anchor anchor, std::chrono::milliseconds most = kMostAnchorWait);
  // Waits for the one that is under way, to the limit; a thread that is stuck even then is left behind.
  ~AnchorThread();
  AnchorThread(const AnchorThread&) = delete;
  AnchorThread& operator=(const AnchorThread&) = delete;

  bool busy() const;  // one is under way
  // "evidence.anchor" while busy().
  Result<void> give(std::string line);
  // What became of the one before, once: its error, or that it is under way for longer than the limit.
  Result<void> check();
  // The same, after waiting for it.
  Result<void> wait();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace firestop::evidence
