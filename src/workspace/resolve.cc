// From a manifest's entry to one commit of one repository.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/path.h"
#include "workspace/git.h"
#include "workspace/workspace.h"

namespace firestop::workspace {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Names that mean one thing, not an expression ("main~3", ":/fix", "@{-1}", "--all").
bool is_plain_name(const std::string& ref) {
  if (ref.empty() || ref.size() > 1000 || ref.front() == '-' || ref.front() == '/' || ref == "@")
    return false;
  for (const char c : ref)
    if (static_cast<unsigned char>(c) <= 32 || c == 127 ||
        std::string_view("~^:?*[\\").find(c) != std::string_view::npos)
      return false;
  return ref.find("..") == std::string::npos && ref.find("@{") == std::string::npos;
}

// The folder of a local source, as a real path that did not leave the manifest's folder on the way.
Result<std::string> real_folder(const manifest::Manifest& manifest, const manifest::Entry& entry) {
  TRY_ASSIGN(const UniqueFd folder, open_file(manifest.folder, O_PATH | O_DIRECTORY));
  auto source = open_beneath(folder.get(), entry.repo, O_PATH | O_DIRECTORY, 0);
  if (!source)
    return fail("git.not_a_repository",
                entry.repo + ": not a folder below " + manifest.folder + " (" + source.error().message + ")",
                "`repo` is \".\" or a path below the manifest's folder");
  char real[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(source->get());
  const ssize_t n = ::readlink(link.c_str(), real, sizeof real);
  if (n <= 0 || n == sizeof real)
    return fail_errno("git.not_a_repository", entry.repo + ": cannot name its folder");
  return std::string(real, static_cast<size_t>(n));
}

struct Found {
  std::string commit, branch;
};

// `run` asks git in the source's own view, so that HEAD is that of a linked worktree.
Result<Found> find_commit(const std::vector<std::string>& where, const RepoSource& source) {
  const auto ask = [&](std::vector<std::string> arguments) -> Result<std::string> {
    arguments.insert(arguments.begin(), where.begin(), where.end());
    TRY_ASSIGN(GitOutcome outcome, run_git("", arguments));
    return outcome.ok() ? first_line(outcome.out) : std::string();
  };
  const auto commit_of = [&](const std::string& name) {
    return ask({"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"});
  };
  Found found;
  if (source.ref.empty()) {
    TRY_ASSIGN(const std::string head, ask({"symbolic-ref", "--quiet", "HEAD"}));
    if (head.starts_with("refs/heads/")) found.branch = head.substr(11);
    TRY_ASSIGN(found.commit, commit_of("HEAD"));
    if (!found.commit.empty()) return found;
    TRY_ASSIGN(const std::string any,
               ask({"for-each-ref", "--count=1", "--format=%(refname)", "refs/heads"}));
    if (any.empty())
      return fail("git.no_commits", source.entry + ": the repository " + source.git_dir + " has no commits",
                  "commit something first");
    return fail("git.no_commits", source.entry + ": HEAD stands on a branch without commits",
                "name a branch in `ref`");
  }
  if (!is_plain_name(source.ref))
    return fail("git.unknown_ref", source.entry + ": '" + source.ref + "' is not a branch, tag or commit",
                "write a plain name: main, v1.2, or a commit's id");
  // A branch wins over a tag of the same name, both over an abbreviated id.
  const bool full = source.ref.starts_with("refs/");
  const std::string branch = full ? source.ref : "refs/heads/" + source.ref;
  TRY_ASSIGN(found.commit, commit_of(branch));
  if (!found.commit.empty()) {
    if (branch.starts_with("refs/heads/")) found.branch = branch.substr(11);
    return found;
  }
  std::vector<std::string> names;
  if (!full) names = {"refs/tags/" + source.ref, "refs/remotes/" + source.ref};
  const bool hex =
      source.ref.size() >= 7 && source.ref.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (hex || source.ref == "HEAD") names.push_back(source.ref);
  for (const auto& name : names) {
    TRY_ASSIGN(found.commit, commit_of(name));
    if (!found.commit.empty()) return found;
  }
  return fail("git.unknown_ref",
              source.entry + ": no branch, tag or commit '" + source.ref + "' in " + source.git_dir,
              "see: git branch -a; git tag");
}

}  // namespace

Result<RepoSource> resolve_repository(const manifest::Manifest& manifest, const manifest::Entry& entry) {
  if (!entry.host.empty())
    return fail("git.remote",
                entry.path + ": repositories of other hosts (" + entry.host + ") are not supported",
                "clone it below the manifest's folder and name that path in `repo`");
  TRY_ASSIGN(const std::string folder, real_folder(manifest, entry));
  // Not a repository further up: that would reach out of the manifest's folder.
  const std::vector<std::string> where = {"-C", folder};
  auto arguments = where;
  for (const char* argument : {"rev-parse", "--absolute-git-dir", "--git-common-dir",
                               "--is-shallow-repository", "--show-object-format", "--show-prefix"})
    arguments.push_back(argument);
  TRY_ASSIGN(const GitOutcome outcome, run_git("", arguments));
  if (!outcome.ok())
    return fail("git.not_a_repository",
                entry.path + ": " + folder + " is no git repository: " + last_words(outcome.error),
                "name the folder that holds .git (or a bare repository) in `repo`");
  const auto answers = lines_of(outcome.out);
  if (answers.size() < 4)
    return fail("git.not_a_repository", entry.path + ": git gave no answer for " + folder);
  const bool inside = answers.size() > 4 && !answers[4].empty();
  const bool bare = !inside && answers[0] == folder;
  if (inside || (!bare && !exists(join_path(folder, ".git"))))
    return fail("git.not_a_repository",
                entry.path + ": " + folder + " is only a folder inside the repository " + answers[0],
                "put the manifest at the repository's root, or name a folder that is a repository itself");
  RepoSource source;
  source.entry = entry.path;
  const std::string common = answers[1].front() == '/' ? answers[1] : join_path(folder, answers[1]);
  char real[PATH_MAX];
  if (!::realpath(common.c_str(), real))
    return fail_errno("git.not_a_repository", entry.path + ": " + common);
  source.git_dir = real;
  source.shallow_source = answers[2] == "true";
  source.object_format = answers[3];
  if (source.object_format != "sha1" && source.object_format != "sha256")
    return fail("git.object_format",
                entry.path + ": objects of format '" + source.object_format + "' are unknown");
  source.name = entry.repo == "." ? manifest.name : entry.repo;
  source.ref = entry.ref;
  source.depth = entry.depth;
  TRY_ASSIGN(Found found, find_commit(where, source));
  if (!is_object_id(found.commit, source.object_format))
    return fail("git.unknown_ref", entry.path + ": git named no commit for '" + source.ref + "'");
  source.commit = std::move(found.commit);
  source.branch = std::move(found.branch);
  return source;
}

}  // namespace firestop::workspace
