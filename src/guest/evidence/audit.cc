#include "guest/evidence/audit.h"

#include <linux/audit.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace firestop::guest {
namespace {

constexpr uint32_t kBacklog = 8192;           // records
constexpr uint32_t kLocked = 2;               // on, and neither rules nor this change until the next boot
constexpr uint32_t kLongestWait = 600 * 100;  // as long as the kernel takes, in its ticks or longer

struct Field {
  uint32_t name, value;
};

Result<void> add_rule(Netlink& link, uint32_t list, uint32_t action, std::initializer_list<uint32_t> calls,
                      std::initializer_list<Field> fields) {
  audit_rule_data rule{};
  rule.flags = list;
  rule.action = action;
  for (const uint32_t call : calls) rule.mask[AUDIT_WORD(call)] |= static_cast<uint32_t>(AUDIT_BIT(call));
  for (const Field& field : fields) {
    rule.fields[rule.field_count] = field.name;
    rule.values[rule.field_count] = field.value;
    rule.fieldflags[rule.field_count++] = AUDIT_EQUAL;
  }
  return link.request(AUDIT_ADD_RULE, bytes_of(rule));
}

}  // namespace

Result<Audit> Audit::open() {
  Audit audit;
  TRY_ASSIGN(audit.link_, Netlink::open(NETLINK_AUDIT, 0));
  TRY(audit.own());
  // Only what succeeded. 32-bit calls (i386's numbers) exist for root in the machine only.
  TRY(add_rule(audit.link_, AUDIT_FILTER_EXIT, AUDIT_ALWAYS,
               {SYS_execve, SYS_execveat, SYS_rename, SYS_renameat, SYS_renameat2, SYS_unlink, SYS_unlinkat,
                SYS_rmdir, SYS_link, SYS_linkat, SYS_mknod, SYS_mknodat},
               {{AUDIT_ARCH, AUDIT_ARCH_X86_64}, {AUDIT_SUCCESS, 1}}));
  TRY(add_rule(audit.link_, AUDIT_FILTER_EXIT, AUDIT_ALWAYS, {11, 358}, {{AUDIT_ARCH, AUDIT_ARCH_I386}}));
  // The process's title is what its argv says already.
  TRY(add_rule(audit.link_, AUDIT_FILTER_EXCLUDE, AUDIT_ALWAYS, {}, {{AUDIT_MSGTYPE, AUDIT_PROCTITLE}}));
  return audit;
}

Result<void> Audit::own() {
  audit_status wanted{};
  wanted.mask = AUDIT_STATUS_ENABLED | AUDIT_STATUS_PID | AUDIT_STATUS_RATE_LIMIT |
                AUDIT_STATUS_BACKLOG_LIMIT | AUDIT_STATUS_BACKLOG_WAIT_TIME;
  wanted.enabled = 1;
  wanted.pid = static_cast<uint32_t>(::getpid());
  wanted.backlog_limit = kBacklog;
  wanted.backlog_wait_time = kLongestWait;
  return link_.request(AUDIT_SET, bytes_of(wanted));
}

Result<void> Audit::begin() {
  // From here on not even root in the machine takes a rule away: what it did then would be missed in silence.
  audit_status locked{};
  locked.mask = AUDIT_STATUS_ENABLED;
  locked.enabled = kLocked;
  TRY(link_.request(AUDIT_SET, bytes_of(locked)));
  while (next()) {
  }
  (void)assembler_.take_lost();
  ask();
  return {};
}

void Audit::ask() {
  quiet_ = false;
  (void)link_.send(AUDIT_GET, {});
}

void Audit::take_status(std::string_view payload) {
  audit_status status{};
  ::memcpy(&status, payload.data(), std::min(sizeof status, payload.size()));
  quiet_ = status.backlog == 0;
  if (lost_before_) lost_ += status.lost - *lost_before_;
  lost_before_ = status.lost;
  // The kernel gives up on a listener that is slow for long.
  if (status.pid != static_cast<uint32_t>(::getpid()) || status.enabled == 0) {
    ++lost_;
    audit_status again{};
    again.mask = AUDIT_STATUS_PID;
    again.pid = static_cast<uint32_t>(::getpid());
    (void)link_.send(AUDIT_SET, bytes_of(again));
  }
}

std::optional<AuditEvent> Audit::next() {
  uint16_t type = 0;
  std::string payload;
  while (true) {
    const auto got = link_.receive(type, payload);
    if (got == Netlink::Got::kNothing) return std::nullopt;
    if (got == Netlink::Got::kOverflow) {
      ++lost_;
      continue;
    }
    if (type == AUDIT_GET) {
      take_status(payload);
      continue;
    }
    if (auto event = assembler_.take(type, payload); event && event->complete) return event;
  }
}

uint64_t Audit::take_lost() {
  return std::exchange(lost_, 0) + assembler_.take_lost();
}

}  // namespace firestop::guest
