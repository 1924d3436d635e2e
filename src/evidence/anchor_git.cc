#include "evidence/anchor_git.h"

#include <algorithm>
#include <cstdlib>

#include "base/process.h"
#include "evidence/anchor.h"

namespace firestop::evidence {
namespace {

constexpr int kTries = 8;  // against others that add at the same moment
constexpr uint64_t kMostRead = 256u << 20;
constexpr const char* kEmptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";  // in repositories of SHA-1

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

Result<GitAnchor> GitAnchor::parse(const std::string& where) {
  const size_t hash = where.rfind('#');
  GitAnchor out;
  if (hash != std::string::npos) {
    out.repository_ = where.substr(0, hash);
    out.ref_ = where.substr(hash + 1);
  }
  if (out.repository_.empty() || !out.ref_.starts_with("refs/"))
    return fail("evidence.anchor", "an anchor in git is git:REPO#REF, with a REF below refs/",
                "such as git:/srv/anchors.git#refs/heads/firestop");
  return out;
}

GitAnchor::Clock::time_point GitAnchor::limit() {
  return Clock::now() + kMostAnchorTime;
}

Result<std::string> GitAnchor::git(std::vector<std::string> words, const std::string& input,
                                   Clock::time_point until) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  std::vector<std::string> argv = {"git",
                                   "-C",
                                   repository_,
                                   "-c",
                                   "core.hooksPath=/dev/null",
                                   "-c",
                                   "core.fsmonitor=false",
                                   "-c",
                                   "safe.directory=*",
                                   "-c",
                                   "gc.auto=0"};
  argv.insert(argv.end(), words.begin(), words.end());
  const char* path = std::getenv("PATH");
  auto out = run_checked(
      {.argv = std::move(argv),
       .env =
           std::vector<std::string>{std::string("PATH=") + (path ? path : "/usr/bin:/bin"),
                                    "HOME=/nonexistent", "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1",
                                    "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
                                    "GIT_AUTHOR_NAME=Firestop", "GIT_AUTHOR_EMAIL=firestop@localhost",
                                    "GIT_COMMITTER_NAME=Firestop", "GIT_COMMITTER_EMAIL=firestop@localhost"}},
      {.input = input, .output_limit = kMostRead, .timeout = std::max(left, std::chrono::milliseconds(0))});
  if (!out)
    return fail("evidence.anchor", "the anchor git:" + repository_ + "#" + ref_ + ": " + out.error().message);
  return out;
}

Result<void> GitAnchor::check() const {
  TRY(git({"check-ref-format", ref_}));
  TRY(git({"rev-parse", "--git-dir"}));
  return {};
}

Result<void> GitAnchor::prepare() const {
  TRY(git({"hash-object", "-w", "-t", "tree", "/dev/null"}));
  return {};
}

Result<void> GitAnchor::add(const std::string& line) const {
  const auto until = limit();
  Result<void> last;
  for (int i = 0; i < kTries; ++i) {
    const std::string before =
        without_newline(git({"rev-parse", "--verify", "--quiet", ref_}, {}, until).value_or(""));
    std::vector<std::string> words = {"commit-tree", kEmptyTree};
    if (!before.empty()) words.insert(words.end(), {"-p", before});
    TRY_ASSIGN(const std::string commit, git(std::move(words), line + "\n", until));
    const std::string none(40, '0');
    const auto moved =
        git({"update-ref", ref_, without_newline(commit), before.empty() ? none : before}, {}, until);
    if (moved) return {};
    last = Unexpected(moved.error());
  }
  return last;
}

Result<std::string> GitAnchor::read() const {
  TRY(check());
  if (!git({"rev-parse", "--verify", "--quiet", ref_})) return std::string();
  return git({"log", "--reverse", "--first-parent", "--format=%B", "--end-of-options", ref_});
}

}  // namespace firestop::evidence
