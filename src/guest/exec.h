// One command in the container, from "exec" to "exited".
//
//   running -> (command ended, or stop()) -> dying -> (no process left) -> draining -> (streams ended) ->
//   over
//
// The command's end is the end of everything in its container: the reaper is killed, with it the whole
// process namespace, and so every writer of its pipes is gone. What was written is sent in full, however slow
// the host reads; a grandchild that keeps stdout open cannot hold up anything.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/result.h"
#include "channel/messages.h"
#include "guest/cgroup.h"
#include "guest/container_run.h"
#include "guest/events.h"
#include "guest/port.h"
#include "guest/streams.h"

namespace firestop::guest {

// The streams of an exec. Those of exec 0 are the protocol's fixed ones; later ones follow at kLaterStreams,
// four apart, and the host opens them after it sent "exec".
inline constexpr uint16_t kLaterStreams = 1024;
inline constexpr int kMaxExec = 8192;
struct ExecStreams {
  uint16_t in = channel::kStdin, out = channel::kStdout, err = channel::kStderr;
};
ExecStreams streams_of(int exec_id);

class Execution {
 public:
  // `on_notices` gets where the container's calls are notified, if any are.
  static Result<std::unique_ptr<Execution>> start(Events& events, Port& port, const Cgroup& cgroup,
                                                  const ContainerSettings& settings,
                                                  const channel::Exec& exec,
                                                  std::vector<std::string> environment,
                                                  std::function<void(UniqueFd)> on_notices);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  int id() const { return exited_.id; }
  pid_t reaper() const { return cell_.pid; }
  void signal(int number);
  void resize(uint16_t rows, uint16_t columns);
  void input(std::string_view bytes);
  void input_ends();
  // Ends the command and all around it.
  void stop();
  // After every round of events: moves output, sends "exited" once all is said. An error: the container could
  // not be made.
  Result<void> step();

  bool over() const { return state_ == State::kOver; }
  bool processes_gone() const { return state_ == State::kDraining || state_ == State::kOver; }
  ExecStreams streams() const { return streams_of(exited_.id); }
  // How long the loop may sleep; -1: for ever.
  int timeout_ms() const;

 private:
  enum class State { kRunning, kDying, kDraining, kOver };
  Execution(Events& events, Port& port, const Cgroup& cgroup)
      : events_(events), port_(port), cgroup_(cgroup) {}
  Result<std::vector<std::pair<int, int>>> make_pipes();
  void take_terminal(UniqueFd master);
  void hear();
  void hear(Cell::News news);
  void reap();
  void kill_all();

  Events& events_;
  Port& port_;
  const Cgroup& cgroup_;
  std::function<void(UniqueFd)> on_notices_;
  State state_ = State::kRunning;
  Cell cell_;
  bool contained_ = true, terminal_wanted_ = false;
  std::optional<int> ended_;  // the command's wait status, as the reaper told it
  bool killed_by_host_ = false;
  uint32_t oom_kills_before_ = 0;
  std::string broken_;
  channel::Exited exited_;
  UniqueFd terminal_;             // a duplicate of the master side, for its size and signals
  std::vector<UniqueFd> theirs_;  // the command's ends of the pipes, until it has them
  std::unique_ptr<Input> in_;
  std::unique_ptr<Output> out_, err_;
  std::string early_input_;  // came before the terminal did
  bool early_end_ = false;
};

}  // namespace firestop::guest
