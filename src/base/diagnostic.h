// A fault in a text that a person wrote: where, which field, what is wrong, what is expected.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace firestop {

struct Position {
  size_t line = 0;    // from 1; 0 means unknown
  size_t column = 0;  // from 1, in characters (code points), not bytes
  bool operator==(const Position&) const = default;
};

struct Diagnostic {
  std::string file;
  Position where;
  std::string field;     // "workspace.entries.repo.ref"; may be empty
  std::string wrong;     // "unknown key 'foo'"
  std::string expected;  // "one of type, repo, ref"; may be empty

  // "FILE:LINE:COL: FIELD: wrong; expected"
  std::string headline() const;
};

// The headline, then the line of `text` it points into and a caret below it. Control characters of the
// line are replaced, long lines are cut around the caret.
std::string render(const Diagnostic& diagnostic, std::string_view text);
std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view text);

}  // namespace firestop
