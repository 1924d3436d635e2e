#include "sandbox/local_io.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/file.h"

namespace firestop::sandbox {
namespace {

constexpr size_t kChunk = 64u << 10;

// Copies until end of file or an error on either side; closes `ours` so that the other end learns of it.
void copy_input(UniqueFd to) {
  char buffer[kChunk];
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || !write_all(to.get(), {buffer, static_cast<size_t>(n)})) return;
  }
}

void copy_output(UniqueFd from, int to) {
  char buffer[kChunk];
  for (;;) {
    const ssize_t n = ::read(from.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || !write_all(to, {buffer, static_cast<size_t>(n)})) return;
  }
}

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("io.pipe", "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool may_read_stdin() {
  if (::fcntl(STDIN_FILENO, F_GETFD) < 0) return false;
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground < 0 || foreground == ::getpgrp();
}

}  // namespace

Result<std::unique_ptr<LocalIo>> LocalIo::open(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away shows as EPIPE, in the thread that writes
  std::unique_ptr<LocalIo> io(new LocalIo);
  if (options.terminal) {
    termios now{};
    if (::tcgetattr(STDIN_FILENO, &now) != 0)
      return fail("io.not_a_terminal", "--tty needs a terminal on standard input",
                  "run it from a terminal, or leave --tty away");
    io->saved_ = now;
    termios raw = now;
    ::cfmakeraw(&raw);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  TRY_ASSIGN(Pipe in, make_pipe());
  TRY_ASSIGN(Pipe out, make_pipe());
  TRY_ASSIGN(Pipe err, make_pipe());
  // The thread may sit in read(2) for good; it ends with the process.
  if (may_read_stdin()) std::thread(copy_input, std::move(in.write)).detach();
  io->input_ = std::move(in.read);
  io->output_thread_ = std::thread(copy_output, std::move(out.read), STDOUT_FILENO);
  io->errors_thread_ = std::thread(copy_output, std::move(err.read), STDERR_FILENO);
  io->output_ = std::move(out.write);
  io->errors_ = std::move(err.write);
  return io;
}

void LocalIo::finish() {
  output_.reset();
  errors_.reset();
  if (output_thread_.joinable()) output_thread_.join();
  if (errors_thread_.joinable()) errors_thread_.join();
}

void LocalIo::restore_terminal() {
  if (saved_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*saved_);
  saved_.reset();
}

LocalIo::~LocalIo() {
  restore_terminal();
  if (output_thread_.joinable()) output_thread_.detach();
  if (errors_thread_.joinable()) errors_thread_.detach();
}

LocalIo::Size LocalIo::window_size() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
      return {size.ws_row, size.ws_col};
  }
  return {};
}

}  // namespace firestop::sandbox
