// A git ref as an anchor: each checkpoint is the message of a commit of nothing, upon the one before. By
// git's plumbing only; hooks, and configuration other than the repository's own, play no part.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::evidence {

class GitAnchor {
 public:
  // "REPO#REF", REF below refs/. "evidence.anchor".
  static Result<GitAnchor> parse(const std::string& where);
  Result<void> check() const;    // that the repository is there
  Result<void> prepare() const;  // before the first add()
  // Several writers may add to one ref. Within kMostAnchorTime.
  Result<void> add(const std::string& line) const;
  // All messages, oldest first, with empty lines between; "" for a ref that is not there.
  Result<std::string> read() const;

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::time_point limit();
  Result<std::string> git(std::vector<std::string> words, const std::string& input = {},
                          Clock::time_point until = limit()) const;
  std::string repository_, ref_;
};

}  // namespace firestop::evidence
