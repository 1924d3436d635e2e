// Which commits and tags of a source a sandbox gets.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "workspace/workspace.h"

namespace firestop::workspace {

struct TagRef {
  std::string name;    // "refs/tags/v1"
  std::string id;      // of the tag object, or of the commit
  std::string commit;  // peeled
};

struct History {
  std::vector<std::string> shallow;  // commits that are shown without parents; sorted
  std::vector<TagRef> tags;          // on commits of the history, sorted by name; at most kMaxTags
};

inline constexpr size_t kMaxTags = 20000;
inline constexpr size_t kMaxWalk = 2'000'000;  // commits looked at one by one (depth, shallow sources)

// Counts depth as `git clone --depth` does: the commit itself is 1.
Result<History> read_history(const RepoSource& source);
// Changes whenever read_history() of the same commit and depth could change; cheap.
Result<std::string> history_state(const RepoSource& source);

}  // namespace firestop::workspace
