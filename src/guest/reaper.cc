#include "guest/reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "guest/container.h"
#include "guest/exec_notice.h"
#include "guest/memfd_guard.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

// Descriptors that a command may ask for lie below this.
constexpr int kHigh = 16;  // well below the least that limits.open_files may be

// Sends one report, with a descriptor if there is one. Without a listener it is lost, and so be it.
void tell(int control, Report::Kind kind, int status, std::string_view text = {}, int descriptor = -1) {
  if (control < 0) return;
  Report report;
  report.kind = kind;
  report.status = status;
  ::memcpy(report.text, text.data(), std::min(text.size(), sizeof report.text - 1));
  iovec bytes{&report, sizeof report};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    ::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  (void)::sendmsg(control, &message, MSG_NOSIGNAL);
}

// Closes everything but `keep`: PID 1's channel and disks are not for the container.
void close_all_but(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned from = 0;
  for (const int fd : keep) {
    if (fd < 0) continue;
    if (static_cast<unsigned>(fd) > from) ::close_range(from, static_cast<unsigned>(fd) - 1, 0);
    from = static_cast<unsigned>(fd) + 1;
  }
  ::close_range(from, ~0u, 0);
}

struct Pty {
  UniqueFd master, slave;
};

Result<Pty> open_terminal(const Terminal& size) {
  Pty pty;
  pty.master.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  int unlock = 0;
  if (!pty.master.valid() || ::ioctl(pty.master.get(), TIOCSPTLCK, &unlock) != 0)
    return fail_errno("container.terminal", "cannot make a terminal");
  pty.slave.reset(::ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  const winsize window{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (!pty.slave.valid() || ::ioctl(pty.slave.get(), TIOCSWINSZ, &window) != 0)
    return fail_errno("container.terminal", "cannot make a terminal");
  return pty;
}

// Puts {ours, theirs} in place, and /dev/null where nothing is said for 0, 1 and 2.
bool place_descriptors(const std::vector<std::pair<int, int>>& descriptors) {
  std::vector<std::pair<int, int>> high;  // out of the way first: the two sides may overlap
  for (const auto& [ours, theirs] : descriptors) {
    const int copy = ::fcntl(ours, F_DUPFD_CLOEXEC, kHigh);
    if (copy < 0 || theirs < 0 || theirs >= kHigh) return false;
    high.emplace_back(copy, theirs);
  }
  for (const int standard : {0, 1, 2}) {
    const auto is_it = [&](const auto& pair) { return pair.second == standard; };
    if (std::any_of(high.begin(), high.end(), is_it)) continue;
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const int copy = null < 0 ? -1 : ::fcntl(null, F_DUPFD_CLOEXEC, kHigh);
    if (copy < 0) return false;
    high.emplace_back(copy, standard);
  }
  for (const auto& [copy, theirs] : high)
    if (::dup2(copy, theirs) < 0) return false;
  return true;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::string why_not_started(const std::string& program, int error) {
  if (error == ENOENT && program.find('/') != std::string::npos && ::access(program.c_str(), F_OK) == 0)
    return program + ": the interpreter that it names does not exist";
  if (error == ENOENT && program.find('/') == std::string::npos) return program + ": not found in PATH";
  return program + ": " + ::strerror(error);
}

// The command's side of fork(2).
[[noreturn]] void become_command(const ContainerCommand& command,
                                 const std::vector<std::pair<int, int>>& descriptors, int terminal,
                                 bool contained, int control) {
  const auto give_up = [&](int status, const std::string& why) {
    tell(control, Report::Kind::kCannotStart, status, why);
    ::_exit(status);
  };
  ::setsid();
  if (terminal >= 0 && ::ioctl(terminal, TIOCSCTTY, 0) != 0) give_up(126, "the terminal cannot be taken");
  if (contained) {
    // To write one's own oom_score_adj one must be dumpable; execve(2) makes the command so anyway, and no
    // other process of the account exists yet.
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (!write_kernel_file("/proc/self/oom_score_adj", "0")) give_up(126, "cannot prepare the process");
  }
  if (!place_descriptors(descriptors)) give_up(126, "cannot place its descriptors");
  if (::chdir(command.directory.c_str()) != 0) give_up(126, command.directory + ": " + ::strerror(errno));
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> argv = pointers(command.argv);
  std::vector<char*> environment = pointers(command.environment);
  ::environ = environment.data();  // where execvpe(3) looks for PATH
  ::execvpe(argv[0], argv.data(), environment.data());
  const int error = errno;
  give_up(error == ENOENT || error == ENOTDIR ? 127 : 126, why_not_started(command.argv[0], error));
  ::_exit(126);
}

int shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Reaps until the command has ended; passes signals on while it runs.
int tend(pid_t command, int signals, int control) {
  bool listening = control >= 0;
  while (true) {
    pollfd sources[2] = {{signals, POLLIN, 0}, {listening ? control : -1, POLLIN, 0}};
    if (::poll(sources, 2, -1) < 0 && errno != EINTR) ::_exit(125);
    if (sources[1].revents != 0) {
      int32_t number = 0;
      if (::recv(control, &number, sizeof number, MSG_DONTWAIT) == sizeof number)
        ::kill(-command, number);
      else
        listening = false;
    }
    signalfd_siginfo ignored;
    while (::read(signals, &ignored, sizeof ignored) > 0) {
    }
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (pid == command) return status;
  }
}

}  // namespace

void run_reaper(const ContainerSettings& settings, const ContainerCommand& command,
                std::optional<Terminal> terminal, int control) {
  const auto broken = [&](const Error& error) {
    tell(control, Report::Kind::kBroken, 0, error.message);
    ::_exit(125);
  };
  std::vector<int> keep{control, settings.network, settings.watch};
  for (const auto& [ours, theirs] : command.descriptors) keep.push_back(ours);
  close_all_but(keep);
  if (settings.outside) {
    if (const auto entered = enter_root_for_test(settings); !entered) broken(entered.error());
  } else {
    if (const auto built = build_container(settings); !built) broken(built.error());
    if (const auto dropped = drop_privileges(settings); !dropped) broken(dropped.error());
  }

  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  const UniqueFd signals(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) broken(Error{"container.reaper", "cannot watch children", "", errno});

  if (settings.notices != ContainerSettings::Notices::kNone) {
    const auto notices = settings.notices == ContainerSettings::Notices::kExecutions
                             ? install_exec_notices()
                             : install_memfd_notices();
    if (!notices) broken(notices.error());
    tell(control, Report::Kind::kNotices, 0, {}, notices->get());
  }
  Pty pty;
  std::vector<std::pair<int, int>> descriptors = command.descriptors;
  if (terminal) {
    auto opened = open_terminal(*terminal);
    if (!opened) broken(opened.error());
    pty = std::move(*opened);
    for (const int standard : {0, 1, 2}) descriptors.emplace_back(pty.slave.get(), standard);
  }
  const pid_t child = ::fork();
  if (child < 0)
    broken(Error{"container.reaper", std::string("cannot fork: ") + ::strerror(errno), "", errno});
  if (child == 0) become_command(command, descriptors, pty.slave.get(), !settings.outside, control);

  tell(control, Report::Kind::kStarted, 0, {}, pty.master.get());
  close_all_but({control, signals.get()});  // its output ends when the command's processes end
  const int status = tend(child, signals.get(), control);
  tell(control, Report::Kind::kEnded, status);
  if (control < 0) ::_exit(shell_status(status));
  while (true) ::pause();  // SIGCHLD stays blocked; what ends now is reaped with the namespace
}

}  // namespace firestop::guest
