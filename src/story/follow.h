// The lines of a record that may be growing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::story {

class Follower {
 public:
  // Of `directory`/events.jsonl. "evidence.not_found", "evidence.unreadable".
  static Result<Follower> open(const std::string& directory);
  // The next whole line, good until the next call; nothing when there is none yet. "evidence.unreadable";
  // "evidence.bad_event" for a line longer than kMostLine.
  Result<std::optional<std::string_view>> next();
  uint64_t number() const { return number_; }  // of the last line, from 1

 private:
  explicit Follower(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  std::string buffer_;
  size_t at_ = 0;
  uint64_t number_ = 0;
};

}  // namespace firestop::story
