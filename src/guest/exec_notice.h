// seccomp's notifications of execve(2) and execveat(2): see seccomp_unotify(2) for what they can and cannot
// promise, and exec_guard.h for what that means here.
#pragma once

#include <linux/seccomp.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

// For a container's first process, after its own filter: from here on every execution is notified, and there
// are no memory files. Until somebody receives from the descriptor, executions wait.
Result<UniqueFd> install_exec_notices();

class ExecNotice {
 public:
  static std::optional<ExecNotice> receive(int listener);

  // The file that the thread of `account` names (O_PATH); not valid when it cannot be told.
  UniqueFd file(uid_t account) const;
  void refuse(int error) const;  // the call fails with `error`
  void go_on() const;

 private:
  ExecNotice() = default;
  std::string name() const;
  void answer(int error, unsigned flags) const;

  int listener_ = -1;
  seccomp_notif notice_{};
};

// Where an open file lies, for people: inside, of bounded length, "?" when that cannot be told.
std::string place_inside(const UniqueFd& file);

}  // namespace firestop::guest
