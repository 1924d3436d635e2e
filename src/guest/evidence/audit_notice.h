// Which of audit's events are looked at once, before their process goes on: those that are told with the help
// of what the process is like now. A BPF program behind the kernel's audit_log_exit(), when the records of a
// system call are on their way.
//
// Not among them: executions of the image's own programs that run nobody's code, and removals whose names
// hang on no descriptor. Their records have all there is to say.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "guest/evidence/btf.h"
#include "guest/evidence/wakeup.h"

namespace firestop::guest {

class AuditNotice {
 public:
  static Result<AuditNotice> make(const Btf& types, const Wakeup& wakeup);
  // False: all of audit's events must be waited for.
  bool works() const { return link_.valid(); }
  // What the process asked to execute last is of this device, and can wait. Of another device, nobody was
  // asked for it, and it cannot.
  void can_wait(uint32_t pid, dev_t device);
  void cannot_wait(uint32_t pid);

 private:
  UniqueFd patient_, link_;
};

}  // namespace firestop::guest
