#include "guest/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace firestop::guest {
namespace {

constexpr int kIdleTerminalPollMs = 50;

void make_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

ExecStreams streams_of(int id) {
  if (id == 0) return {};
  const auto first = static_cast<uint16_t>(kLaterStreams + 4 * id);
  return {first, static_cast<uint16_t>(first + 1), static_cast<uint16_t>(first + 2)};
}

Result<std::unique_ptr<Execution>> Execution::start(Events& events, Port& port, const Cgroup& cgroup,
                                                    const ContainerSettings& settings,
                                                    const channel::Exec& exec,
                                                    std::vector<std::string> environment,
                                                    std::function<void(UniqueFd)> on_notices) {
  std::unique_ptr<Execution> execution(new Execution(events, port, cgroup));
  execution->exited_.id = exec.id;
  execution->on_notices_ = std::move(on_notices);
  execution->contained_ = !settings.outside;
  execution->terminal_wanted_ = exec.terminal;
  execution->oom_kills_before_ = cgroup.oom_kills();
  const ExecStreams streams = execution->streams();
  port.mux().open_send(streams.out);
  port.mux().open_send(streams.err);
  port.mux().open_receive(streams.in);

  ContainerCommand command{exec.argv, std::move(environment), "/workspace", {}};
  std::optional<Terminal> terminal;
  if (exec.terminal) {
    terminal = Terminal{exec.rows, exec.columns};
    port.mux().send_end(streams.err);  // a terminal has one output
  } else {
    TRY_ASSIGN(command.descriptors, execution->make_pipes());
  }
  TRY_ASSIGN(execution->cell_, start_cell(settings, command, terminal));
  execution->theirs_.clear();
  Execution* self = execution.get();
  events.watch(self->cell_.control.get(), EPOLLIN, [self](uint32_t) { self->hear(); });
  events.watch(self->cell_.pidfd.get(), EPOLLIN, [self](uint32_t) { self->reap(); });
  return execution;
}

Execution::~Execution() {
  if (cell_.pid > 0) {
    kill_all();
    ::waitpid(cell_.pid, nullptr, 0);
  }
  if (cell_.control.valid()) events_.drop(cell_.control.get());
  if (cell_.pidfd.valid()) events_.drop(cell_.pidfd.get());
}

Result<std::vector<std::pair<int, int>>> Execution::make_pipes() {
  const ExecStreams streams = this->streams();
  std::vector<std::pair<int, int>> descriptors;
  for (const int standard : {0, 1, 2}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("guest.exec", "cannot make a pipe");
    const bool input = standard == 0;
    UniqueFd ours(ends[input ? 1 : 0]);
    theirs_.emplace_back(ends[input ? 0 : 1]);
    descriptors.emplace_back(theirs_.back().get(), standard);
    make_nonblocking(ours.get());
    if (input)
      in_ = std::make_unique<Input>(events_, port_, streams.in, std::move(ours), Source::kPipe);
    else
      (standard == 1 ? out_ : err_) = std::make_unique<Output>(
          events_, port_, standard == 1 ? streams.out : streams.err, std::move(ours), Source::kPipe);
  }
  return descriptors;
}

void Execution::take_terminal(UniqueFd master) {
  make_nonblocking(master.get());
  terminal_.reset(::fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
  UniqueFd input(::fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
  if (!terminal_.valid() || !input.valid()) return stop();
  in_ = std::make_unique<Input>(events_, port_, streams().in, std::move(input), Source::kTerminal);
  out_ = std::make_unique<Output>(events_, port_, streams().out, std::move(master), Source::kTerminal);
  if (!early_input_.empty()) in_->data(early_input_);
  if (early_end_) in_->end();
  early_input_.clear();
}

void Execution::signal(int number) {
  if (state_ != State::kRunning || number <= 0 || number >= NSIG) return;
  if (number == SIGKILL) killed_by_host_ = true;
  // What a key would have sent goes where the key's signal goes: to the terminal's foreground group.
  const bool of_a_key = number == SIGINT || number == SIGQUIT || number == SIGTSTP;
  if (terminal_.valid() && of_a_key && ::ioctl(terminal_.get(), TIOCSIG, number) == 0) return;
  cell_.signal(number);
}

void Execution::resize(uint16_t rows, uint16_t columns) {
  const winsize size{rows, columns, 0, 0};
  if (terminal_.valid()) ::ioctl(terminal_.get(), TIOCSWINSZ, &size);
}

void Execution::input(std::string_view bytes) {
  if (in_) return in_->data(bytes);
  if (terminal_wanted_ && state_ == State::kRunning)
    early_input_.append(bytes);  // bounded by the stream's window
  else
    port_.mux().consumed(streams().in, bytes.size());
}

void Execution::input_ends() {
  if (in_)
    in_->end();
  else
    early_end_ = true;
}

void Execution::stop() {
  if (state_ != State::kRunning) return;
  killed_by_host_ = true;
  state_ = State::kDying;
  kill_all();
}

void Execution::kill_all() {
  if (!contained_) cgroup_.kill_all();  // no process namespace to end with its first process
  cell_.kill();
}

void Execution::hear() {
  while (cell_.control.valid()) {
    auto news = cell_.next_report();
    if (!news) {  // the reaper is gone; reap() says more
      events_.drop(cell_.control.get());
      cell_.control.reset();
      return;
    }
    std::optional<Cell::News>& report = *news;
    if (!report) return;
    hear(std::move(*report));
  }
}

void Execution::hear(Cell::News news) {
  switch (news.report.kind) {
    case Report::Kind::kBroken:
      broken_ = news.report.text;
      break;
    case Report::Kind::kStarted:
      if (news.descriptor.valid()) take_terminal(std::move(news.descriptor));
      break;
    case Report::Kind::kNotices:
      on_notices_(std::move(news.descriptor));
      break;
    case Report::Kind::kCannotStart:
      exited_.cannot_start = news.report.text;
      break;
    case Report::Kind::kEnded: {
      ended_ = news.report.status;
      if (state_ != State::kRunning) break;
      state_ = State::kDying;
      const uint32_t processes = cgroup_.processes();
      exited_.left_behind = processes > 0 ? processes - 1 : 0;  // the reaper is one of them
      kill_all();
      break;
    }
  }
}

void Execution::reap() {
  hear();
  int status = 0;
  if (::waitpid(cell_.pid, &status, WNOHANG) != cell_.pid) return;
  cell_.pid = -1;
  events_.drop(cell_.pidfd.get());
  if (cell_.control.valid()) events_.drop(cell_.control.get());
  cell_.control.reset();
  exited_.status = ended_.value_or(status);
  exited_.oom_kills = cgroup_.oom_kills() - oom_kills_before_;
  exited_.out_of_memory = exited_.oom_kills > 0 && !killed_by_host_ && WIFSIGNALED(exited_.status) &&
                          WTERMSIG(exited_.status) == SIGKILL;
  state_ = State::kDraining;
  in_.reset();
  if (out_) out_->writers_are_gone();
  if (err_) err_->writers_are_gone();
}

Result<void> Execution::step() {
  if (!broken_.empty()) return fail("guest.container", broken_);
  if (out_) out_->resume();
  if (err_) err_->resume();
  if (state_ != State::kDraining || (out_ && !out_->done()) || (err_ && !err_->done())) return {};
  if (!out_) port_.mux().send_end(streams().out);  // a terminal that never came
  port_.say(exited_);
  state_ = State::kOver;
  return {};
}

int Execution::timeout_ms() const {
  return out_ && out_->needs_polling() ? kIdleTerminalPollMs : -1;
}

}  // namespace firestop::guest
