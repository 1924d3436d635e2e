// Below yaml.h: the text before it is parsed.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace firestop::codec {

// Byte offsets of one text to positions. The text must outlive it; one thread at a time.
class TextIndex {
 public:
  explicit TextIndex(std::string_view text);
  Position at(size_t offset) const;  // beyond the end: the end
  // The spaces and tabs with which the line of `offset` begins.
  std::string_view indentation_of(size_t offset) const;

 private:
  size_t line_of(size_t offset) const;  // from 0

  std::string_view text_;
  std::vector<size_t> starts_;
  // Where the last answer was: questions come in the order of the text, and lines may be a mebibyte long.
  mutable size_t last_offset_ = 0, last_column_ = 1;
};

// Characters that no document may have; the first of each line, at most `limit` of them.
std::vector<Diagnostic> forbidden_characters(std::string_view text, const TextIndex& index, size_t limit);

}  // namespace firestop::codec
