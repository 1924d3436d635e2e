#include "guest/evidence/collectors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr int kAnswerMs = 30'000;

bool unobserved() {
  const auto line = read_kernel_file("/proc/cmdline");
  return line && (*line + " ").find(" firestop.unobserved ") != std::string::npos;
}

}  // namespace

Result<std::unique_ptr<Collectors>> Collectors::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("guest.collectors", "cannot make a socket");
  std::unique_ptr<Collectors> collectors(new Collectors());
  collectors->control_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  TRY_ASSIGN(FileWatch files, FileWatch::make());
  // PID 1 keeps the group, too: when the collectors are gone, what waits for an answer waits on.
  collectors->group_.reset(::fcntl(files.fd(), F_DUPFD_CLOEXEC, 3));
  collectors->aside_ = unobserved();
  collectors->pid_ = ::fork();
  if (collectors->pid_ < 0) return fail_errno("guest.collectors", "cannot fork");
  if (collectors->pid_ == 0) {
    const int control = theirs.get(), group = files.fd();
    // PID 1's port and loop are not for this process.
    for (int fd = 3; fd < 256; ++fd)
      if (fd != control && fd != group) ::close(fd);
    if (collectors->aside_) run_bystander(control);
    run_collector(control, std::move(files));
  }
  TRY(collectors->wait_for(CollectorWord::kReady));
  return collectors;
}

Collectors::~Collectors() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Result<void> Collectors::say(CollectorWord word) {
  if (::send(control_.get(), &word, sizeof word, MSG_NOSIGNAL) != sizeof word)
    return fail_errno("guest.collectors", "the collectors are gone");
  return {};
}

Result<void> Collectors::wait_for(CollectorWord word) {
  pollfd state{control_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&state, 1, kAnswerMs)) < 0 && errno == EINTR) {
  }
  if (ready == 0) return fail("guest.collectors", "the collectors do not answer");
  char text[512];
  const ssize_t got = ::recv(control_.get(), text, sizeof text, MSG_DONTWAIT);
  if (got == sizeof word && ::memcmp(text, &word, sizeof word) == 0) return {};
  if (got <= 0) return fail("guest.collectors", "the collectors are gone");
  return fail("guest.collectors", "cannot observe: " + std::string(text, static_cast<size_t>(got)));
}

Result<void> Collectors::begin() {
  TRY(say(CollectorWord::kWatch));
  return wait_for(CollectorWord::kDone);
}

Result<void> Collectors::finish() {
  if (finishing_) return {};
  finishing_ = true;
  return say(CollectorWord::kFinish);
}

Result<void> Collectors::hear() {
  if (!finishing_ || over_) return fail("guest.collectors", "the collectors are gone");
  TRY(wait_for(CollectorWord::kDone));
  over_ = true;
  return {};
}

}  // namespace firestop::guest
