// The lines of an events.jsonl, in order, without holding more of it than a piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::evidence {

class EventLines {
 public:
  // Of `directory`/events.jsonl: a file, not a link to one, and no other kind of thing.
  // "evidence.not_found", "evidence.unreadable".
  static Result<EventLines> open(const std::string& directory);

  // The next line without its newline, good until the next call; nothing at the end, where a line without a
  // newline is left out. "evidence.unreadable": it cannot be read; "evidence.bad_event": a line is longer
  // than kMostLine.
  Result<std::optional<std::string_view>> next();
  uint64_t bytes() const { return bytes_; }  // of the lines so far
  uint64_t line() const { return line_; }    // number of the last one, from 1

 private:
  explicit EventLines(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  std::string buffer_;
  size_t from_ = 0;
  uint64_t bytes_ = 0, line_ = 0;
};

}  // namespace firestop::evidence
