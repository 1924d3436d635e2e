#include "guest/container_run.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/reaper.h"

namespace firestop::guest {
namespace {

constexpr uint64_t kNamespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

// As fork(2), into new namespaces and the container's cgroup. SAFETY: a raw clone3(2) without CLONE_VM is a
// plain fork as far as memory goes; PID 1 has one thread, so no lock of glibc's can be held.
pid_t fork_into(const ContainerSettings& settings, int* pidfd) {
  clone_args arguments{};
  arguments.flags = CLONE_PIDFD | (settings.outside ? 0 : kNamespaces);
  arguments.pidfd = reinterpret_cast<uintptr_t>(pidfd);
  arguments.exit_signal = SIGCHLD;
  if (settings.cgroup >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<uint64_t>(settings.cgroup);
  }
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

}  // namespace

Result<Cell> start_cell(const ContainerSettings& settings, const ContainerCommand& command,
                        std::optional<Terminal> terminal) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("container.start", "cannot make a socket");
  Cell cell;
  cell.control.reset(ends[0]);
  UniqueFd theirs(ends[1]);
  int pidfd = -1;
  cell.pid = fork_into(settings, &pidfd);
  if (cell.pid < 0) return fail_errno("container.start", "cannot make the container's first process");
  if (cell.pid == 0) run_reaper(settings, command, terminal, theirs.get());
  cell.pidfd.reset(pidfd);
  return cell;
}

Result<pid_t> run_in_container(const ContainerSettings& settings, const ContainerCommand& command) {
  int pidfd = -1;
  const pid_t pid = fork_into(settings, &pidfd);
  if (pid < 0) return fail_errno("container.start", "cannot make the container's first process");
  if (pid == 0) run_reaper(settings, command, std::nullopt, -1);
  ::close(pidfd);
  return pid;
}

Result<std::optional<Cell::News>> Cell::next_report() {
  News news;
  iovec bytes{&news.report, sizeof news.report};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  const ssize_t got = ::recvmsg(control.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got < 0) return fail_errno("container.report", "cannot read the reaper's report");
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int descriptor = -1;
    ::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    news.descriptor.reset(descriptor);
  }
  if (got != sizeof news.report) return fail("container.report", "the container's reaper is gone");
  news.report.text[sizeof news.report.text - 1] = '\0';
  return news;
}

void Cell::signal(int number) {
  const int32_t wire = number;
  if (control.valid()) (void)::send(control.get(), &wire, sizeof wire, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// The process id is ours until it is reaped, so it names nobody else.
void Cell::kill() {
  if (pid > 0) ::kill(pid, SIGKILL);
}

}  // namespace firestop::guest
