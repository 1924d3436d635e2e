// A secret text in the forms that people, tools and attackers write it: for finding it, and for putting
// another text of the same form in its place. Escapes are the finder's matter, not here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firestop::credentials {

struct Form {
  enum class Kind { kPlain, kBase64, kBase64Inside, kHex };
  Kind kind = Kind::kPlain;
  std::string bytes;
  std::string instead;   // the same form of the other text; kInside and kHex: of the same length
  size_t hold_from = 1;  // bytes: its known prefix is passed, and some more
};

// Of `text`, whose first `known` bytes everybody may know: as it is, hexadecimal in both cases, and what
// base64 makes of it inside of anything, at each of the three offsets, in both alphabets. `instead` may be
// empty.
std::vector<Form> forms_of(std::string_view text, size_t known, std::string_view instead);
// base64(before + text), whole: Basic authentication, tokens that were encoded once more.
std::vector<Form> base64_forms(std::string_view before, std::string_view text, std::string_view instead);

}  // namespace firestop::credentials
