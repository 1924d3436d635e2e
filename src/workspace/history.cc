#include "workspace/history.h"

#include <algorithm>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "workspace/git.h"

namespace firestop::workspace {
namespace {

constexpr uint64_t kMaxCommitBytes = 4u << 20;

Result<std::string> shallow_file(const RepoSource& source) {
  const std::string path = join_path(source.git_dir, "shallow");
  if (!exists(path)) return std::string();
  return read_file(path);
}

std::vector<std::string> parents_of(const std::string& commit) {
  std::vector<std::string> parents;
  for (size_t from = 0; from < commit.size() && commit[from] != '\n';) {
    const size_t end = std::min(commit.find('\n', from), commit.size());
    if (commit.compare(from, 7, "parent ") == 0) parents.push_back(commit.substr(from + 7, end - from - 7));
    from = end + 1;
  }
  return parents;
}

struct Walk {
  std::unordered_set<std::string> commits;
  std::vector<std::string> shallow;
};

// Breadth first, so that every commit is met at its smallest depth.
Result<Walk> walk(const RepoSource& source, const std::unordered_set<std::string>& cut) {
  TRY_ASSIGN(ObjectReader reader, ObjectReader::start(source.git_dir));
  Walk walk;
  std::vector<std::string> level = {source.commit};
  walk.commits.insert(source.commit);
  for (uint64_t depth = 1; !level.empty(); ++depth) {
    std::vector<std::string> next;
    for (const auto& id : level) {
      TRY_ASSIGN(const std::string commit, reader.read(id, "commit", kMaxCommitBytes));
      const auto parents = parents_of(commit);
      if (parents.empty()) continue;
      if (cut.contains(id) || (source.depth && depth >= *source.depth)) {
        walk.shallow.push_back(id);
        continue;
      }
      for (const auto& parent : parents)
        if (walk.commits.insert(parent).second) next.push_back(parent);
      if (walk.commits.size() > kMaxWalk)
        return fail("git.too_many_commits",
                    source.entry + ": more than " + std::to_string(kMaxWalk) + " commits",
                    "set `depth` on the entry");
    }
    level = std::move(next);
  }
  std::sort(walk.shallow.begin(), walk.shallow.end());
  return walk;
}

}  // namespace

Result<std::string> history_state(const RepoSource& source) {
  Sha256 digest;
  TRY(git_records("git.read", source.git_dir,
                  {"for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"}, -1, '\n', 8192,
                  [&](std::string_view line) -> Result<void> {
                    digest.update(line);
                    digest.update("\n");
                    return {};
                  }));
  TRY_ASSIGN(const std::string shallow, shallow_file(source));
  digest.update(shallow);
  return digest.hex();
}

Result<History> read_history(const RepoSource& source) {
  History history;
  std::unordered_set<std::string> cut;
  TRY_ASSIGN(const std::string shallow, shallow_file(source));
  for (size_t from = 0; from < shallow.size();) {
    const size_t end = std::min(shallow.find('\n', from), shallow.size());
    cut.insert(shallow.substr(from, end - from));
    from = end + 1;
  }
  const bool partial = source.depth || !cut.empty();
  Walk walked;
  if (partial) {
    TRY_ASSIGN(walked, walk(source, cut));
    history.shallow = std::move(walked.shallow);
  }
  std::vector<std::string> arguments = {
      "for-each-ref", "--format=%(objectname) %(objecttype) %(*objectname) %(*objecttype) %(refname)",
      "refs/tags"};
  if (!partial) arguments.insert(arguments.begin() + 1, "--merged=" + source.commit);
  TRY(git_records("git.read", source.git_dir, arguments, -1, '\n', 8192,
                  [&](std::string_view line) -> Result<void> {
                    std::vector<std::string> fields;
                    for (int i = 0; i < 4; ++i) {
                      const size_t space = std::min(line.find(' '), line.size());
                      fields.emplace_back(line.substr(0, space));
                      line.remove_prefix(std::min(space + 1, line.size()));
                    }
                    TagRef tag{std::string(line), fields[0], fields[1] == "commit" ? fields[0] : fields[2]};
                    // Tags of tags, of trees and of blobs stay at home.
                    if (fields[1] != "commit" && fields[3] != "commit") return {};
                    if (partial && !walked.commits.contains(tag.commit)) return {};
                    if (history.tags.size() < kMaxTags) history.tags.push_back(std::move(tag));
                    return {};
                  }));
  std::sort(history.tags.begin(), history.tags.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return history;
}

}  // namespace firestop::workspace
