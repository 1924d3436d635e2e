// The kernel's audit, made ours: which system calls it tells of, and its records as events.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "guest/evidence/audit_record.h"
#include "guest/evidence/netlink.h"

namespace firestop::guest {

class Audit {
 public:
  // Enables it, takes the records, and asks for executions, renames, removals, new names of files, and new
  // pipes with a name. When records come faster than they are taken, whoever causes them waits; nothing is
  // dropped.
  static Result<Audit> open();
  // From now on losses count.
  Result<void> begin();
  int fd() const { return link_.fd(); }
  std::optional<AuditEvent> next();  // without waiting
  // Asks the kernel how much it has lost; the answer comes with the events.
  void ask();
  // Its last answer said that no record waits in the kernel.
  bool quiet() const { return quiet_; }
  uint64_t take_lost();

 private:
  Result<void> own();
  void take_status(std::string_view payload);

  Netlink link_;
  AuditAssembler assembler_;
  uint64_t lost_ = 0;
  bool quiet_ = false;
  std::optional<uint32_t> lost_before_;
};

}  // namespace firestop::guest
