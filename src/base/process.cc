#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/path.h"

namespace firestop {
namespace {

constexpr size_t kErrorTail = 64u << 10;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const auto& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// What the child does between fork and exec; only async-signal-safe calls. Ends with the step that
// failed and its errno on `report`.
[[noreturn]] void become(const Command& command, const char* program, char* const* argv, char* const* env,
                         std::vector<std::pair<int, int>>& moves, int report, pid_t parent, int gate) {
  const auto die = [&] {
    const int number = errno;
    (void)!::write(report, &number, sizeof number);
    ::_exit(127);
  };
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) die();
  if (gate < 0 && ::getppid() != parent) ::_exit(127);
  // Born into namespaces: our parent's id says nothing here, but its end of the gate closes with it.
  if (gate >= 0) {
    char open = 0;
    ssize_t n;
    while ((n = ::read(gate, &open, 1)) < 0 && errno == EINTR) {
    }
    if (n != 1) ::_exit(127);
  }
  if (command.new_process_group) ::setpgid(0, 0);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // First out of the way of every target number, then into place.
  int floor = 10;
  for (const auto& [from, to] : moves) floor = std::max(floor, to + 1);
  const int kept_report = ::fcntl(report, F_DUPFD_CLOEXEC, floor);
  if (kept_report < 0) die();
  report = kept_report;
  if (gate >= 0) {
    gate = ::fcntl(gate, F_DUPFD_CLOEXEC, floor);
    if (gate < 0) die();
  }
  for (auto& [from, to] : moves) {
    from = ::fcntl(from, F_DUPFD_CLOEXEC, floor);
    if (from < 0) die();
  }
  for (const auto& [from, to] : moves)
    if (::dup2(from, to) < 0) die();
  for (int fd = 0; fd <= 2; ++fd) {
    if (std::any_of(moves.begin(), moves.end(), [fd](const auto& m) { return m.second == fd; })) continue;
    const int null = ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    if (null < 0) die();
    if (null != fd) {
      ::dup2(null, fd);
      ::close(null);
    }
  }
  // Everything else goes at exec, whoever forgot to mark it.
  ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  for (const auto& [from, to] : moves)
    if (::fcntl(to, F_SETFD, 0) != 0) die();
  if (!command.directory.empty() && ::chdir(command.directory.c_str()) != 0) die();
  if (command.before_exec && command.before_exec(command.before_exec_context) != 0) die();
  // A change of identity in there takes the signal away, and the parent may have ended before it is back.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) die();
  pollfd parent_gone{gate, 0, 0};
  if (gate >= 0 && ::poll(&parent_gone, 1, 0) != 0) ::_exit(127);
  ::execve(program, argv, env);
  die();
  ::_exit(127);
}

// Also what it started, which holds our pipes and would outlive it.
void end_with_group(pid_t pid) {
  ::kill(-pid, SIGKILL);  // there is none, where it stayed in ours
  ::kill(pid, SIGKILL);
}

Result<void> pump(pid_t pid, int in, int out, int err, const RunOptions& options, RunResult& result) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + options.timeout;
  size_t sent = 0;
  UniqueFd in_fd(in), out_fd(out), err_fd(err);
  ::fcntl(in_fd.get(), F_SETFL, O_NONBLOCK);
  if (options.input.empty()) in_fd.reset();
  std::vector<char> buffer(65536);
  while (out_fd.valid() || err_fd.valid()) {
    pollfd fds[3] = {{in_fd.get(), POLLOUT, 0}, {out_fd.get(), POLLIN, 0}, {err_fd.get(), POLLIN, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int n = left <= 0 ? 0 : ::poll(fds, 3, static_cast<int>(std::min<long>(left, 1000000)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      end_with_group(pid);
      return fail("process.timeout", "took longer than " + std::to_string(options.timeout.count()) + " ms");
    }
    if (fds[0].revents) {
      const ssize_t w = ::write(in_fd.get(), options.input.data() + sent, options.input.size() - sent);
      if (w > 0) sent += static_cast<size_t>(w);
      if ((w < 0 && errno != EAGAIN && errno != EINTR) || sent == options.input.size()) in_fd.reset();
    }
    if (fds[1].revents) {
      const ssize_t r = ::read(out_fd.get(), buffer.data(), buffer.size());
      if (r <= 0 && !(r < 0 && errno == EINTR)) out_fd.reset();
      if (r > 0) result.out.append(buffer.data(), static_cast<size_t>(r));
      if (result.out.size() > options.output_limit) {
        end_with_group(pid);
        return fail("process.output_limit",
                    "printed more than " + std::to_string(options.output_limit) + " bytes");
      }
    }
    if (fds[2].revents) {
      const ssize_t r = ::read(err_fd.get(), buffer.data(), buffer.size());
      if (r <= 0 && !(r < 0 && errno == EINTR)) err_fd.reset();
      if (r > 0) result.err.append(buffer.data(), static_cast<size_t>(r));
      if (result.err.size() > 2 * kErrorTail) result.err.erase(0, result.err.size() - kErrorTail);
    }
  }
  return {};
}

}  // namespace

int Child::wait() {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  pidfd.reset();
  return status;
}

int Child::kill_and_wait() {
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
  return wait();
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/sbin:/usr/bin:/sbin:/bin";
  // Tools of the system (mke2fs, nft) live in sbin, which an ordinary user's PATH often lacks.
  const std::string all = std::string(rest) + ":/usr/local/sbin:/usr/sbin:/sbin";
  rest = all;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = join_path(rest.substr(0, end), name);
    if (candidate.front() == '/' && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

Result<Child> spawn(const Command& command) {
  const std::string program = find_program(command.argv.at(0));
  if (program.empty())
    return fail("process.not_found", command.argv[0] + ": not found in PATH",
                "install it, or run: firestop doctor");
  const auto argv = pointers(command.argv);
  const auto env = command.env ? pointers(*command.env) : std::vector<char*>();
  auto moves = command.descriptors;
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return fail_errno("process.start", "cannot make a pipe");
  const UniqueFd report_read(report[0]);
  UniqueFd report_write(report[1]);
  int gate[2] = {-1, -1};
  if (command.namespaces != 0 && ::pipe2(gate, O_CLOEXEC) != 0)
    return fail_errno("process.start", "cannot make a pipe");
  const UniqueFd gate_read(gate[0]);  // kept until the gate is open: no SIGPIPE from a child that died
  const UniqueFd gate_write(gate[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = command.namespaces == 0
                        ? ::fork()
                        : static_cast<pid_t>(::syscall(SYS_clone, command.namespaces | SIGCHLD, nullptr,
                                                       nullptr, nullptr, 0));
  if (pid < 0)
    return fail_errno("process.start",
                      command.namespaces == 0 ? "cannot fork" : "cannot fork into namespaces");
  if (pid == 0) {
    if (gate[1] >= 0) ::close(gate[1]);
    become(command, program.c_str(), argv.data(), command.env ? env.data() : environ, moves, report[1],
           parent, gate[0]);
  }
  report_write.reset();
  if (command.namespaces != 0) {
    auto admitted = command.admit ? command.admit(pid) : Result<void>();
    if (admitted && ::write(gate[1], "g", 1) != 1)
      admitted = fail_errno("process.start", "cannot start a child");
    if (!admitted) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      return tl::unexpected(admitted.error());
    }
  }
  int number = 0;
  ssize_t n;
  while ((n = ::read(report_read.get(), &number, sizeof number)) < 0 && errno == EINTR) {
  }
  if (n != 0) {
    ::waitpid(pid, nullptr, 0);
    errno = number;
    return fail_errno("process.start", "cannot start " + program);
  }
  Child child;
  child.pid = pid;
  child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return child;
}

int RunResult::exit_code() const {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Result<RunResult> run(Command command, const RunOptions& options) {
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return fail_errno("process.start", "cannot make a pipe");
  UniqueFd in_read(in[0]), in_write(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return fail_errno("process.start", "cannot make a pipe");
  UniqueFd out_read(out[0]), out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return fail_errno("process.start", "cannot make a pipe");
  UniqueFd err_read(err[0]), err_write(err[1]);
  command.descriptors.insert(command.descriptors.end(), {{in[0], 0}, {out[1], 1}, {err[1], 2}});
  TRY_ASSIGN(Child child, spawn(command));
  in_read.reset();
  out_write.reset();
  err_write.reset();
  RunResult result;
  auto pumped = pump(child.pid, in_write.release(), out_read.release(), err_read.release(), options, result);
  result.status = child.wait();
  if (!pumped) return wrap(pumped.error(), command.argv[0]);
  return result;
}

Result<std::string> run_checked(Command command, const RunOptions& options) {
  const std::string name =
      command.argv.size() > 1 ? command.argv[0] + " " + command.argv[1] : command.argv[0];
  TRY_ASSIGN(RunResult result, run(std::move(command), options));
  if (result.ok()) return std::move(result.out);
  std::string tail =
      result.err.size() > 2000 ? "..." + result.err.substr(result.err.size() - 2000) : result.err;
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return fail("process.failed",
              name + ": " + describe_status(result.status) + (tail.empty() ? "" : ": " + tail));
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return "killed by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) +
           ")";
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace firestop
