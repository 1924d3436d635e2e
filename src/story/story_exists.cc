// Whether what ran is still there: from the changes that were seen after it ran, and what the files of the
// workspace are in the end.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "story/story_builder.h"

namespace firestop::story {
namespace {

constexpr size_t kMostAncestors = 64;  // directories above a file whose renames are followed
constexpr size_t kMostRenames = 32;    // of one file

constexpr std::string_view kBelowWorkspace = "/workspace/";

// A file's name as the collectors of the end have it: relative to the workspace.
std::string in_workspace(const std::string& path) {
  return path.starts_with(kBelowWorkspace) ? path.substr(kBelowWorkspace.size()) : path;
}

class Fates {
 public:
  explicit Fates(const Story& story) : story_(story) {
    for (size_t i = 0; i < story.changes.size(); ++i) {
      const FileChange& change = story.changes[i];
      if (change.what == "write") {
        last_write_[change.path] = change.seq;
        continue;
      }
      if (change.what == "link") {  // its own name was free before
        links_[change.path].push_back(i);
        continue;
      }
      by_path_[change.path].push_back(i);
      if (change.what == "rename" && change.to != change.path) by_path_[change.to].push_back(i);
    }
  }

  std::optional<bool> of(const Script& script) const {
    if (!script.path.starts_with('/')) return std::nullopt;  // none, or of no directory
    // Its names: those that it was given since count, too.
    std::deque<Name> names{{script.path, script.seq}};
    std::optional<bool> out = false;
    for (size_t steps = 0; !names.empty(); ++steps) {
      if (steps == kMostRenames) return std::nullopt;
      const auto found = follow(names, script);
      if (found == true) return true;
      if (!found) out = std::nullopt;
    }
    return out;
  }

 private:
  struct Name {
    std::string path;
    uint64_t seq = 0;  // what happened before is nothing to it
  };

  // What became of the first of the names, which is taken away; others that the file had are put behind.
  std::optional<bool> follow(std::deque<Name>& names, const Script& script) const {
    auto [path, seq] = std::move(names.front());
    names.pop_front();
    for (size_t renames = 0; renames < kMostRenames; ++renames) {
      const Next next = after(path, seq);
      if (const auto links = links_.find(path); links != links_.end())
        for (const size_t i : links->second)
          if (const FileChange& link = story_.changes[i];
              link.seq > seq && (next.change == kNone || link.seq < story_.changes[next.change].seq))
            if (names.size() < kMostRenames) names.push_back({link.to, link.seq});
      if (next.change == kNone) return at_the_end(path, script);
      const FileChange& change = story_.changes[next.change];
      seq = change.seq;
      if (change.what == "delete") return false;
      if (change.path == next.name)
        path = change.to + path.substr(next.name.size());
      else if (!next.above)
        return false;  // another file took its name
    }
    return std::nullopt;
  }

  struct Next {
    size_t change = kNone;
    std::string name;  // of the path itself, or of a directory above it
    bool above = false;
  };

  // The next deletion or renaming of that file or of a directory that it lies in.
  Next after(const std::string& path, uint64_t seq) const {
    Next best;
    std::string name = path;
    for (size_t up = 0; up < kMostAncestors && name.size() > 1; ++up) {
      if (const auto found = by_path_.find(name); found != by_path_.end()) {
        const auto next =
            std::upper_bound(found->second.begin(), found->second.end(), seq,
                             [this](uint64_t at, size_t i) { return at < story_.changes[i].seq; });
        if (next != found->second.end() &&
            (best.change == kNone || story_.changes[*next].seq < story_.changes[best.change].seq))
          best = {*next, name, up > 0};
      }
      const size_t slash = name.rfind('/');
      if (slash == std::string::npos || slash == 0) break;
      name.resize(slash);
    }
    return best;
  }

  std::optional<bool> at_the_end(const std::string& path, const Script& script) const {
    const auto write = last_write_.find(path);
    const bool written = write != last_write_.end() && write->second > script.seq;
    auto found = story_.ends.find(path);
    if (found == story_.ends.end()) found = story_.ends.find(in_workspace(path));
    if (found == story_.ends.end()) {
      // Not a file that the run wrote. All of the workspace's were told of, if that collector missed nothing.
      const auto of_files = [](const std::string& text) { return text.starts_with("files"); };
      const bool all_told = story_.collectors_done && !story_.lost.contains("files") &&
                            std::any_of(story_.working.begin(), story_.working.end(), of_files) &&
                            std::none_of(story_.missing.begin(), story_.missing.end(), of_files);
      return all_told && !written && path.starts_with(kBelowWorkspace) ? std::optional(true) : std::nullopt;
    }
    const FileEnd& end = found->second;
    if (script.size != end.size) return false;
    if (!end.digest.empty() && !script.digest.empty() && script.kept == script.size)
      return end.digest == script.digest;
    return written ? std::nullopt : std::optional(true);
  }

  const Story& story_;
  std::unordered_map<std::string, std::vector<size_t>> by_path_, links_;
  std::unordered_map<std::string, uint64_t> last_write_;
};

}  // namespace

void find_what_exists(Story& story) {
  const Fates fates(story);
  for (auto* scripts : {&story.scripts, &story.opened})
    for (auto& script : *scripts) script.exists = fates.of(script);
}

}  // namespace firestop::story
