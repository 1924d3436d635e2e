#include "workspace/import_check.h"

#include <wchar.h>
#include <wctype.h>

#include <algorithm>
#include <clocale>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "workspace/git.h"
#include "workspace/host_tree.h"
#include "workspace/publish_pack.h"

namespace firestop::workspace {
namespace {

constexpr uint64_t kMaxPaths = 2'000'000;  // of one commit
constexpr size_t kMaxChanges = 4'000'000;  // over all new commits
constexpr size_t kMaxTreeDepth = 1000;
constexpr uint64_t kMaxTreeBytes = 64u << 20;
constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kRecord = 1u << 16;
constexpr uint64_t kMaxCommitBytes = 4u << 20;

using Ids = std::unordered_set<std::string>;

std::string printable(std::string_view path) {
  std::string out;
  for (const char c : path.substr(0, 300))
    out.push_back(static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c);
  return out;
}

struct Checker {
  const RepoSource& source;
  const Quarantine& quarantine;
  const std::string& tip;
  const ImportLimits& limits;

  Result<Ids> own_objects() const;
  Result<void> fsck() const;
  Result<void> connected(const Ids& own) const;
  Result<void> paths_and_links(const std::string& commits, ObjectReader& objects) const;
  Result<void> no_new_twins() const;
  Result<void> list_paths(const std::string& commit,
                          const std::function<Result<void>(std::string_view)>& each) const;
};

// All objects that came, and that they are not too large in all.
Result<Ids> Checker::own_objects() const {
  Ids own;
  uint64_t bytes = 0;
  TRY(git_records(
      "import.bad_object", quarantine.reading(),
      {"cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname) %(objectsize)"}, -1,
      '\n', kRecord, [&](std::string_view line) -> Result<void> {
        const size_t space = line.find(' ');
        if (space == std::string_view::npos) return fail("import.bad_object", "an object without a size");
        const uint64_t size = std::strtoull(std::string(line.substr(space + 1)).c_str(), nullptr, 10);
        if (size > limits.max_bytes - bytes)
          return fail("import.too_large",
                      "the new objects have more than " + format_bytes(limits.max_bytes) + " unpacked",
                      "raise limits.result, or leave out of the repository what is large");
        bytes += size;
        own.insert(to_binary(line.substr(0, space)));
        return {};
      }));
  return own;
}

// Every object that came, beside those that it may name: what a tree calls .gitmodules is judged as that,
// also when it lay in the source before.
Result<void> Checker::fsck() const {
  const std::string folder = join_path(quarantine.git_dir(), "objects/pack");
  TRY_ASSIGN(const std::string name, name_of_pack(folder));
  GitLimits limit;
  limit.address_space = (2ull << 30) + 2 * limits.max_bytes;
  limit.file_size = limits.max_bytes + (64u << 20);
  limit.cpu_seconds = 300;
  TRY_ASSIGN(const GitOutcome outcome,
             run_git_on(quarantine.packing(),
                        {"index-pack", "--fsck-objects", "-o", join_path(quarantine.packed(), "checked.idx"),
                         join_path(folder, name + ".pack")},
                        -1, -1, limit));
  if (outcome.ok()) return {};
  return fail("import.bad_object", "git refuses the objects: " + last_words(outcome.error));
}

// Everything reachable from the tip came along or lies in the history of the base commit.
Result<void> Checker::connected(const Ids& own) const {
  Ids foreign;
  auto listed = git_records("import.incomplete", quarantine.reading(),
                            {"rev-list", "--objects", "--no-object-names", tip, "--not", source.commit}, -1,
                            '\n', kRecord, [&](std::string_view id) -> Result<void> {
                              std::string binary = to_binary(id);
                              if (!own.contains(binary)) foreign.insert(std::move(binary));
                              return {};
                            });
  if (!listed) return fail("import.incomplete", "objects are missing: " + listed.error().message);
  if (foreign.empty()) return {};
  // Rare: old content that is back, not sent again.
  TRY(git_records("import.incomplete", source.git_dir,
                  {"rev-list", "--objects", "--no-object-names", source.commit}, -1, '\n', kRecord,
                  [&](std::string_view id) -> Result<void> {
                    foreign.erase(to_binary(id));
                    return {};
                  }));
  if (foreign.empty()) return {};
  return fail("import.foreign_object",
              "the commits refer to " + std::to_string(foreign.size()) +
                  " object(s) of the source repository that the sandbox was not given");
}

// How many paths a tree unfolds to. A dozen trees can stand for 10^12 files, so this comes before anything
// that lists them; every tree is read once, however often it occurs.
class PathCounter {
 public:
  PathCounter(ObjectReader& objects, size_t id_bytes) : objects_(objects), id_bytes_(id_bytes) {}

  Result<uint64_t> count(const std::string& tree, size_t depth = 0) {
    if (const auto known = counts_.find(tree); known != counts_.end()) return known->second;
    if (depth > kMaxTreeDepth) return fail("import.bad_path", "folders nested too deeply");
    TRY_ASSIGN(const std::string data, objects_.read(to_hex(tree), "tree", kMaxTreeBytes));
    uint64_t total = 0;
    for (size_t at = 0; at < data.size();) {
      const size_t end = data.find('\0', at);
      if (end == std::string::npos || data.size() - end - 1 < id_bytes_)
        return fail("import.bad_object", "a broken tree");
      ++total;
      if (data.compare(at, 6, "40000 ") == 0) {
        TRY_ASSIGN(const uint64_t below, count(data.substr(end + 1, id_bytes_), depth + 1));
        total += below;
      }
      if (total > kMaxPaths)
        return fail("import.too_large", "a commit has more than " + std::to_string(kMaxPaths) + " files");
      at = end + 1 + id_bytes_;
    }
    counts_.emplace(tree, total);
    return total;
  }

 private:
  static std::string to_hex(const std::string& binary) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (const char c : binary) {
      out.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
      out.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
    }
    return out;
  }

  ObjectReader& objects_;
  size_t id_bytes_;
  std::unordered_map<std::string, uint64_t> counts_;
};

// Every name and link that a new commit brings, also if a later one removes it: somebody may look at it.
Result<void> Checker::paths_and_links(const std::string& commits, ObjectReader& objects) const {
  TRY_ASSIGN(const UniqueFd input, temporary_input(commits));
  size_t changes = 0;
  std::string change;  // ":OLDMODE NEWMODE OLDID NEWID STATUS"; its path follows
  return git_records(
      "import.failed", quarantine.reading(),
      {"diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "-z", "--no-renames", "--no-commit-id",
       "--full-index"},
      input.get(), '\0', kRecord, [&](std::string_view record) -> Result<void> {
        if (change.empty()) {
          if (record.size() < 15 || record.front() != ':')
            return fail("import.failed", "git diff-tree: odd output");
          change = std::string(record);
          return {};
        }
        if (++changes > kMaxChanges) return fail("import.too_large", "the new commits change too many files");
        const std::string mode = change.substr(8, 6);
        const size_t first = change.find(' ', 15);
        const size_t second = first == std::string::npos ? first : change.find(' ', first + 1);
        if (second == std::string::npos) return fail("import.failed", "git diff-tree: odd output");
        const std::string id = change.substr(first + 1, second - first - 1);
        change.clear();
        if (mode == "000000") return {};
        if (record.size() > kMaxPathBytes)
          return fail("import.bad_path", printable(record) + "...: the path is too long");
        for (size_t from = 0; from <= record.size();) {
          const size_t end = std::min(record.find('/', from), record.size());
          if (end - from > 255)
            return fail("import.bad_path", printable(record) + ": a name longer than 255 bytes");
          from = end + 1;
        }
        if (mode != "120000") return {};
        auto target = objects.read(id, "blob", kMaxPathBytes);
        if (!target)
          return fail("import.link_out", printable(record) + ": a symbolic link without a sane target");
        if (target->find('\0') == std::string::npos && link_stays_inside(record, *target)) return {};
        return fail(
            "import.link_out",
            printable(record) + ": a symbolic link that leaves the repository, to " + printable(*target),
            "new links must be relative and stay inside");
      });
}

Result<void> Checker::list_paths(const std::string& commit,
                                 const std::function<Result<void>(std::string_view)>& each) const {
  return git_records("import.failed", quarantine.reading(),
                     {"ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree", commit}, -1, '\0', kRecord,
                     each);
}

// One key for all names that a folding file system takes for the same: simple lower case of every character.
// Bytes that are no UTF-8 stand for themselves.
std::string folded(std::string_view path, locale_t locale) {
  std::string out;
  for (size_t i = 0; i < path.size();) {
    const auto lead = static_cast<unsigned char>(path[i]);
    const size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (lead < 0x80) {
      out.push_back(static_cast<char>(lead >= 'A' && lead <= 'Z' ? lead + 32 : lead));
    } else if (length == 1 || i + length > path.size()) {
      out.push_back(path[i]);
      ++i;
      continue;
    } else {
      uint32_t code = lead & (0xffu >> (length + 1));
      for (size_t k = 1; k < length; ++k) code = code << 6 | (static_cast<unsigned char>(path[i + k]) & 0x3f);
      out += "\xff" + std::to_string(::towlower_l(static_cast<wint_t>(code), locale)) + ";";
    }
    i += length;
  }
  return out;
}

Result<void> Checker::no_new_twins() const {
  const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", static_cast<locale_t>(nullptr));
  if (!locale) return fail_errno("import.failed", "no locale C.UTF-8");
  std::unordered_map<std::string, std::string> seen;
  std::unordered_set<std::string> twins;
  std::string example;
  auto listed = list_paths(tip, [&](std::string_view path) -> Result<void> {
    const auto [place, added] = seen.emplace(folded(path, locale), path);
    if (added) return {};
    if (twins.empty()) example = place->second;
    twins.insert(place->second);
    twins.emplace(path);
    return {};
  });
  ::freelocale(locale);
  if (!listed || twins.empty()) return listed;
  TRY(list_paths(source.commit, [&](std::string_view path) -> Result<void> {
    twins.erase(std::string(path));
    return {};
  }));
  if (twins.empty()) return {};
  return fail(
      "import.case_twins",
      printable(*twins.begin()) + ": differs from another name only in case (" + printable(example) + ")",
      "on a file system that folds case one would overwrite the other");
}

}  // namespace

Result<CheckedCommits> check_commits(const RepoSource& source, const Quarantine& quarantine,
                                     const std::string& tip, const ImportLimits& limits) {
  const Checker checker{source, quarantine, tip, limits};
  TRY_ASSIGN(const Ids own, checker.own_objects());
  if (!own.contains(to_binary(tip))) return fail("import.incomplete", "the bundle lacks its own tip");
  TRY(quarantine.join(source));
  TRY(checker.fsck());
  CheckedCommits checked;
  TRY_ASSIGN(ObjectReader objects, ObjectReader::start(quarantine.reading()));
  {
    auto commit = objects.read(tip, "commit", kMaxCommitBytes);
    if (!commit) return fail("import.bad_object", "the tip is no commit: " + commit.error().message);
    const size_t body = commit->find("\n\n");
    checked.uncommitted =
        body != std::string::npos &&
        commit->compare(body + 2, std::string_view(kUncommittedSubject).size(), kUncommittedSubject) == 0;
  }
  TRY(checker.connected(own));
  std::string commits;
  PathCounter counter(objects, source.object_format == "sha256" ? 32 : 20);
  TRY(git_records("import.failed", quarantine.reading(),
                  {"rev-list", "--no-commit-header", "--format=%H %T", tip, "--not", source.commit}, -1, '\n',
                  kRecord, [&](std::string_view line) -> Result<void> {
                    const std::string_view id = line.substr(0, line.find(' '));
                    if (++checked.new_commits > limits.max_files)
                      return fail("import.too_large",
                                  "more than " + std::to_string(limits.max_files) + " new commits",
                                  "raise limits.result_files");
                    commits.append(id).append("\n");
                    return counter.count(to_binary(line.substr(id.size() + 1))).map([](uint64_t) {});
                  }));
  TRY(checker.paths_and_links(commits, objects));
  TRY(checker.no_new_twins());
  return checked;
}

}  // namespace firestop::workspace
