// Child processes. A child never outlives the thread that made it (PR_SET_PDEATHSIG), inherits no
// descriptor but those named, and has its environment spelled out.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace firestop {

struct Command {
  std::vector<std::string> argv;                 // argv[0] is looked up in PATH unless it has a slash
  std::optional<std::vector<std::string>> env;   // "NAME=value"; nullopt inherits ours
  std::string directory;                         // working directory; empty keeps ours
  std::vector<std::pair<int, int>> descriptors;  // {ours, number in the child}; 0, 1, 2 default to /dev/null
  bool new_process_group = true;                 // so that a terminal's Ctrl-C reaches only us
  int (*before_exec)(void* context) = nullptr;   // in the child, async-signal-safe; non-zero aborts (errno)
  void* before_exec_context = nullptr;
  uint64_t namespaces = 0;  // CLONE_NEW* of clone(2): what the child, and not only its children, is born into
  // With namespaces: called in us once the child exists, and before it does anything, for what only the
  // outside can give (identity maps, a control group). An error here ends the child; nothing has run then.
  std::function<Result<void>(pid_t)> admit;
};

struct Child {
  pid_t pid = -1;
  UniqueFd pidfd;  // pollable; readable when it ended

  // wait(2) status; blocks.
  int wait();
  // SIGKILL to the child, safe against reused ids (pidfd), then wait.
  int kill_and_wait();
};

// Starts it; exec failures are reported here, not by an exit status.
Result<Child> spawn(const Command& command);

struct RunResult {
  int status = 0;        // wait(2) status
  std::string out, err;  // err keeps at most its last 64 KiB

  bool ok() const { return status == 0; }
  int exit_code() const;  // 128+n after a signal
};

struct RunOptions {
  std::string input;                          // for stdin
  uint64_t output_limit = 64u << 20;          // more is an error ("process.output_limit")
  std::chrono::milliseconds timeout{600000};  // then it and its group are killed ("process.timeout")
};

// Runs to the end, collecting stdout and stderr (so `descriptors` must not name 0, 1 or 2).
Result<RunResult> run(Command command, const RunOptions& options = {});
// As run, and a non-zero end is an error with the last lines of stderr: "git fetch: ...".
Result<std::string> run_checked(Command command, const RunOptions& options = {});

// The absolute path of a program in PATH, or empty.
std::string find_program(const std::string& name);
// How a wait(2) status reads to people: "exit status 3", "killed by signal 9 (Killed)".
std::string describe_status(int status);

}  // namespace firestop
