// Keeps what is executed in the container to the rules (exec_rules.h) where `shell` is not granted.
//
// The wall: PID 1 holds fanotify(7) permission marks on every file system that the container sees and that
// is not mounted noexec. Whatever way leads to an execution (execve, execveat, a descriptor, a link, an
// interpreter), the kernel opens the file for it and asks here first. An ELF program's loader is opened the
// same way; it is let through only while the kernel itself loads a program, which the stack of the thread
// that waits for the answer tells beyond doubt. Anonymous memory files lie on no such file system:
// memfd_create(2) is refused to the container instead.
//
// The door before it: fanotify's refusal reads as EPERM. So execve(2) and execveat(2) are also notified by
// seccomp, and what the rules refuse fails there, with EACCES. That looks at names in memory which another
// thread can change meanwhile, so it decides nothing: what it lets pass, the wall judges.
//
// Both fail closed: when PID 1 dies the machine dies with it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "guest/events.h"
#include "guest/exec_rules.h"

namespace firestop::guest {

class ExecGuard {
 public:
  // Marks all that is mounted at and below kRoot, now. Nothing may be executed before a call of allow().
  // `account` is whom the container runs as.
  static Result<std::unique_ptr<ExecGuard>> make(Events& events, uid_t account);
  ~ExecGuard();
  ExecGuard(const ExecGuard&) = delete;
  ExecGuard& operator=(const ExecGuard&) = delete;

  void allow(ExecRules rules) { rules_ = std::move(rules), exporting_ = false; }
  // From now on only the export's own programs; and git may execute nothing but git, so that no filter, hook
  // or helper that the agent configured runs on this way out.
  void allow_export(ExecRules rules) { rules_ = std::move(rules), exporting_ = true; }
  const ExecRules& rules() const { return rules_; }

  // The notifications of a container, from install_exec_notices().
  void listen(UniqueFd listener);

  struct Refusal {
    std::string path;    // inside; "" stands for paths beyond the most that are told apart
    uint64_t count = 0;  // since it was last told
  };
  // What was refused and not told yet: of a path the first time at once, the rest with `all`.
  std::vector<Refusal> refusals(bool all);

 private:
  struct Count {
    uint64_t untold = 0;
    bool told = false;
  };
  ExecGuard(Events& events, uid_t account) : events_(events), account_(account) {}
  Result<void> mark_mounts();
  void judge();
  bool may_execute(int file, int thread) const;
  void answer_notice();
  void refused(std::string path);

  Events& events_;
  uid_t account_;
  UniqueFd group_, listener_;
  ExecRules rules_;
  bool exporting_ = false;
  std::map<std::string, Count> refusals_;
};

}  // namespace firestop::guest
