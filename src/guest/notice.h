// seccomp's notifications of system calls: see seccomp_unotify(2) for what they can and cannot promise.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

// For a container's first process, after its own filter, and once: calls for which `program` says
// SECCOMP_RET_USER_NOTIF wait until somebody who receives from the descriptor answers. Calls of other
// architectures never come there: the container's own filter ends the process.
Result<UniqueFd> install_notices(std::span<sock_filter> program);

class Notice {
 public:
  // The next one; nothing when its thread is gone.
  static std::optional<Notice> receive(int listener);

  uint32_t pid() const { return notice_.pid; }  // of the thread
  int call() const { return notice_.data.nr; }
  uint64_t argument(size_t number) const { return notice_.data.args[number]; }
  // A string in the thread's memory, which others may change meanwhile; nothing when there is none that ends
  // within PATH_MAX.
  std::optional<std::string> text_at(uint64_t address) const;

  // Each fails in silence when the call is there no more.
  void refuse(int error) const;
  void go_on() const;
  // The call returns a new descriptor for the same file, with O_CLOEXEC or without flags. What the thread has
  // no room for is refused.
  void give(int fd, uint32_t flags) const;

 private:
  Notice() = default;
  void answer(int error, unsigned flags) const;

  int listener_ = -1;
  seccomp_notif notice_{};
};

}  // namespace firestop::guest
