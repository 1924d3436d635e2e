// Lines of a file that somebody else may have written: one at a time, in constant memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::evidence {

class LineReader {
 public:
  enum class Got {
    kLine,
    kHalf,     // the last bytes of the file, without a newline
    kTooLong,  // more than `most_line` bytes; skipped up to the next line
    kEnd,
  };
  // A regular file, not through a link. "evidence.not_found", "evidence.unreadable". Reads no further than
  // the file was long when it was opened.
  static Result<LineReader> open(const std::string& path, size_t most_line);

  Result<Got> next();                              // "evidence.unreadable"
  std::string_view line() const { return line_; }  // of kLine and kHalf, without newline
  uint64_t number() const { return number_; }      // of it, from 1

 private:
  LineReader(UniqueFd fd, std::string path, size_t most_line, uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), most_line_(most_line), left_(size) {}
  Result<void> fill();

  UniqueFd fd_;
  std::string path_;
  size_t most_line_;
  uint64_t left_;  // of the file
  std::string buffer_, line_;
  size_t at_ = 0;  // in buffer_
  uint64_t number_ = 0;
};

}  // namespace firestop::evidence
