// The smallest manifest that would have let everything happen that runs used, as a change to the one they
// had. Nothing in it opens more than was open before; docs/suggest.md has the rules.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "report/usage.h"

namespace firestop::report {

struct Suggestion {
  struct Step {
    std::string field;   // "egress[1].paths"
    std::string change;  // "only /v1/** and /login"
    std::string reason;  // "120 requests, of GET and POST, went to 2 paths"
    bool done = true;    // false: the text could not be edited so, which is then left to a person
  };
  std::string before, after;  // texts
  std::string diff;           // unified; empty where nothing is to be changed
  std::vector<Step> steps;
  std::vector<std::string> notes;  // what was not judged, and why
  std::vector<EscapeHatch> hatches;
  size_t runs = 0;
};

// `text` is the manifest that all of the runs had. "manifest.*" where it cannot be read.
Result<Suggestion> suggest(const std::vector<story::Story>& stories, std::string_view text,
                           const std::string& name);

codec::Json to_json(const Suggestion& suggestion);
std::string to_text(const Suggestion& suggestion, const std::function<std::string(std::string_view)>& paint);

}  // namespace firestop::report
