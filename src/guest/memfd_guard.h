// Files in anonymous memory (memfd_create(2)) lie on a file system of the kernel's own that nobody can watch
// as a whole. So that no program or script in one runs unseen, and be it over in a moment, PID 1 makes them
// for the container: seccomp notifies the call, the new file is marked for the collectors before anybody has
// it, and it belongs to the account as if that had made it. What the kernel needs for the file itself is then
// PID 1's memory, not the container's, so there are at most kMostFiles at a time (ENFILE).
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"
#include "guest/events.h"

namespace firestop::guest {

// For a container's first process: from here on new files in memory are notified.
Result<UniqueFd> install_memfd_notices();

class MemfdGuard {
 public:
  static constexpr size_t kMostFiles = 4096;

  // `group` is the collectors' fanotify group; not owned.
  MemfdGuard(Events& events, int group, uid_t uid, gid_t gid)
      : events_(events), group_(group), uid_(uid), gid_(gid) {}
  ~MemfdGuard();
  MemfdGuard(const MemfdGuard&) = delete;
  MemfdGuard& operator=(const MemfdGuard&) = delete;

  // The notifications of a container, from install_memfd_notices().
  void listen(UniqueFd listener);

 private:
  void answer();
  bool is_full(dev_t device);

  Events& events_;
  int group_;
  uid_t uid_;
  gid_t gid_;
  UniqueFd listener_;
  size_t files_ = 0;  // no less than there are
};

}  // namespace firestop::guest
