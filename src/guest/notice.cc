#include "guest/notice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace firestop::guest {

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
constexpr unsigned long SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 1ul << 5;  // Linux 5.19
#endif

Result<UniqueFd> install_notices(std::span<sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  // Once received, only death takes a call back: what was done for it is not done twice.
  UniqueFd listener(static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter)));
  if (!listener.valid()) return fail_errno("container.seccomp", "cannot ask to be told of system calls");
  return listener;
}

std::optional<Notice> Notice::receive(int listener) {
  Notice notice;
  notice.listener_ = listener;
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice.notice_) != 0) return std::nullopt;
  return notice;
}

std::optional<std::string> Notice::text_at(uint64_t address) const {
  const UniqueFd memory(::open(("/proc/" + std::to_string(pid()) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid() || address > INT64_MAX) return std::nullopt;
  char text[PATH_MAX];
  size_t got = 0;
  while (got < sizeof text) {  // page by page: the next one may not be there
    const size_t page = 4096 - (address + got) % 4096;
    const ssize_t n = ::pread(memory.get(), text + got, std::min(page, sizeof text - got),
                              static_cast<off_t>(address + got));
    if (n <= 0) return std::nullopt;
    if (const void* end = ::memchr(text + got, '\0', static_cast<size_t>(n)))
      return std::string(text, static_cast<size_t>(static_cast<const char*>(end) - text));
    got += static_cast<size_t>(n);
  }
  return std::nullopt;
}

void Notice::answer(int error, unsigned flags) const {
  seccomp_notif_resp response{};
  response.id = notice_.id;
  response.error = -error;
  response.flags = flags;
  ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void Notice::refuse(int error) const {
  answer(error, 0);
}

void Notice::go_on() const {
  answer(0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

void Notice::give(int fd, uint32_t flags) const {
  seccomp_notif_addfd descriptor{};
  descriptor.id = notice_.id;
  descriptor.flags = SECCOMP_ADDFD_FLAG_SEND;
  descriptor.srcfd = static_cast<uint32_t>(fd);
  descriptor.newfd_flags = flags;
  if (::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ADDFD, &descriptor) < 0) refuse(errno);
}

}  // namespace firestop::guest
