// git as a child, cut off from everything that could make it do something else than asked: no system or user
// configuration, no hooks, no fsmonitor, no prompts, no replace refs or grafts, no transport, no lazy fetch.
// What stays in force is the source's own .git/config, of which nothing that plumbing runs is a command.
//
// safe.directory is "*": the operator named the repository in a manifest of their own, and none of its
// commands can run, which is what git's ownership check protects against.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "jail/parser_jail.h"

namespace firestop::workspace {

// `git_dir` becomes GIT_DIR; empty leaves discovery to git (resolve only).
Command git_command(const std::string& git_dir, const std::vector<std::string>& arguments);

struct GitLimits {
  rlim_t address_space = 0;  // bytes; 0 leaves it
  rlim_t file_size = 0;      // bytes; 0 leaves it
  rlim_t cpu_seconds = 0;    // 0 leaves it
  std::chrono::milliseconds timeout{600000};
};

struct GitOutcome {
  int status = 0;     // wait(2) status
  std::string out;    // stdout, when it was not sent elsewhere
  std::string error;  // the end of stderr

  bool ok() const { return status == 0; }
};

// A repository, and what git sees of the host meanwhile: with a jail nothing but what the jail holds.
struct GitPlace {
  GitPlace(std::string repository) : git_dir(std::move(repository)) {}  // NOLINT: a path is a place
  GitPlace(std::string repository, const jail::ParserJail& held)
      : git_dir(std::move(repository)), jail(&held) {}
  std::string git_dir;
  const jail::ParserJail* jail = nullptr;  // lives longer
};

// Runs to the end. Errors are those of running it ("process.*"); a non-zero end is an outcome.
Result<GitOutcome> run_git(const std::string& git_dir, const std::vector<std::string>& arguments,
                           const std::string& input = {}, uint64_t output_limit = 64u << 20);
// As run_git, with stdin and stdout as descriptors (-1: /dev/null), limits on the child, no network.
Result<GitOutcome> run_git_on(const GitPlace& place, const std::vector<std::string>& arguments, int in,
                              int out, const GitLimits& limits);
// A non-zero end is an error with git's last words: `code`, "git ARG0: ...".
Result<std::string> git_checked(std::string_view code, const std::string& git_dir,
                                const std::vector<std::string>& arguments, const std::string& input = {},
                                uint64_t output_limit = 64u << 20);

// Stdout in records that end with `separator`, as they come; `input` (a descriptor, -1 for none) is its
// stdin. The callback's error ends git and is returned. At most ten minutes of processor time, twenty of the
// clock and 8 GiB; no network. Records beyond `record_limit` bytes are an error.
Result<void> git_records(std::string_view code, const GitPlace& place,
                         const std::vector<std::string>& arguments, int input, char separator,
                         size_t record_limit, const std::function<Result<void>(std::string_view)>& record);

// An unlinked temporary file with `data`, at offset 0; for the stdin of a child.
Result<UniqueFd> temporary_input(std::string_view data);

// `git cat-file --batch`, one object after the other. An answer takes at most ten minutes.
class ObjectReader {
 public:
  static Result<ObjectReader> start(const GitPlace& place);
  ObjectReader(ObjectReader&&) = default;
  ObjectReader& operator=(ObjectReader&&) = delete;
  ~ObjectReader();

  // Its bytes in pieces. Errors: "git.missing_objects", "git.read".
  struct Header {
    std::string type;
    uint64_t size = 0;
  };
  Result<Header> stream(const std::string& id, const std::function<Result<void>(const Header&)>& begin,
                        const std::function<Result<void>(std::string_view)>& sink);
  // The whole object of a type, at most `limit` bytes.
  Result<std::string> read(const std::string& id, std::string_view type, uint64_t limit);

 private:
  ObjectReader() = default;
  Result<void> fill();

  Child child_;
  UniqueFd in_, out_;
  std::string buffer_;
  size_t used_ = 0;
};

// 40 or 64 lower-case hex digits.
bool is_object_id(std::string_view text, std::string_view object_format);
std::string to_binary(std::string_view hex);
// What git said, in one line for a message; our own words for what it says about missing objects.
std::string last_words(std::string_view error);

}  // namespace firestop::workspace
