// One container: namespaces, a root of its own, no capabilities, a system call filter, the declared account.
// Its first process is a small reaper of ours, also as that account; the reaper starts one command and tells
// how it ended. When the reaper dies, the kernel kills all that is left in the container.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "guest/export.h"

namespace firestop::guest {

// What all containers of a run share; made once, at "start".
struct ContainerSettings {
  std::string root;  // mount point of the container's root, as PID 1 sees it
  std::string hostname;
  uint32_t uid = 0, gid = 0;
  std::vector<uint32_t> groups;  // supplementary
  std::string seccomp;           // struct sock_filter[]; never empty
  uint64_t shared_memory = 0;    // bytes of /dev/shm
  uint32_t open_files = 0;
  int cgroup = -1;   // directory of the container's cgroup; not owned
  int network = -1;  // the containers' network namespace; not owned
  // The workspace is read-only but for these (absolute, inside); nullopt: all of it can be written.
  std::optional<std::vector<std::string>> writable;
  // Files that cannot be changed (absolute, inside): programs that are all that may be executed.
  std::vector<std::string> pins;
  int watch = -1;  // fanotify group of the collectors, for what exists only in the container; not owned
  // What seccomp notifies: executions (exec_guard.h), or new files in memory (memfd_guard.h).
  enum class Notices { kNone, kExecutions, kMemfds };
  Notices notices = Notices::kNone;
  // Attack tests only: no container at all; uid 0 with every capability, in PID 1's own namespaces.
  bool outside = false;
};

struct Terminal {
  uint16_t rows = 24, columns = 80;
};

// What the reaper says, in this order: perhaps kNotices, kStarted, perhaps kCannotStart, kEnded. Or kBroken.
struct Report {
  enum class Kind : int32_t {
    kBroken = 1,       // the container could not be made; `text` says why. Fail closed: nothing ran.
    kStarted = 2,      // with a terminal: comes with its master side
    kCannotStart = 3,  // the command could not be executed; `text`; kEnded follows with 126 or 127
    kEnded = 4,        // `status` is the command's wait(2) status
    kNotices = 5,      // comes with where calls are notified; until they are answered they wait
  };
  Kind kind{};
  int32_t status = 0;
  char text[248] = {};
};

// A running container. Destroying it does not end it: kill() and reap do.
struct Cell {
  pid_t pid = -1;
  UniqueFd pidfd;    // readable when all its processes are gone
  UniqueFd control;  // reports come from here; SOCK_SEQPACKET

  struct News {
    Report report;
    UniqueFd descriptor;  // what came with it
  };
  // The next report; nullopt: none yet. An error when the reaper is gone.
  Result<std::optional<News>> next_report();
  // Sends a signal to the command's process group. Harmless when it is gone.
  void signal(int number);
  void kill();
};

// Starts `command`; with `terminal` its descriptors 0, 1 and 2 are a new terminal of the container's own and
// `command.descriptors` must be empty. Errors here are of the kernel (out of processes, ...).
Result<Cell> start_cell(const ContainerSettings& settings, const ContainerCommand& command,
                        std::optional<Terminal> terminal);

// As export.h wants it: the returned process ends with the command's exit status, or 128+n after a signal,
// 126 or 127 when it could not be executed, 125 when the container could not be made.
Result<pid_t> run_in_container(const ContainerSettings& settings, const ContainerCommand& command);

}  // namespace firestop::guest
