// Records of the kernel's audit, from text to values. One event is several records with one serial number:
// SYSCALL, EXECVE (arguments, long ones in pieces over several records), CWD, PATH ..., EOE at the end.
// Records of several events may be mixed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firestop::guest {

struct AuditPath {
  std::string name;  // as it was given to the system call
  std::string kind;  // "NORMAL", "PARENT", "DELETE", "CREATE"
  uint64_t inode = 0;
  uint32_t mode = 0;
};

struct AuditEvent {
  uint64_t serial = 0;
  int64_t at_ms = 0;
  bool complete = false;  // has its SYSCALL record
  uint32_t number = 0;    // of the system call
  uint64_t arguments[4] = {};
  uint32_t pid = 0, parent = 0, uid = 0, gid = 0;
  std::string exe, cwd;
  std::vector<std::string> argv;
  uint32_t argc = 0;
  bool cut = false;  // of the arguments, or paths, some are missing here
  std::vector<AuditPath> paths;
};

class AuditAssembler {
 public:
  // `type` is the record's (linux/audit.h), `text` begins with "audit(". The event that it completes.
  std::optional<AuditEvent> take(uint16_t type, std::string_view text);
  // Events that never were complete, because there were too many: since this was last asked.
  uint64_t take_lost();

  static constexpr size_t kMostOpen = 256;            // events
  static constexpr size_t kMostArguments = 2u << 20;  // bytes of one event: what execve(2) takes
  static constexpr size_t kMostCount = 32768, kMostPaths = 16;

 private:
  struct Open {
    AuditEvent event;
    size_t bytes = 0;
  };
  static void take_arguments(Open& open, std::string_view rest);

  std::map<uint64_t, Open> open_;
  uint64_t lost_ = 0;
};

// "name=" in "a=1 name=\"x\" b=2": its raw value, "" when there is none.
std::string_view audit_field(std::string_view record, std::string_view name);
// A value that came from outside the kernel: "quoted", or hexadecimal digits, or "(null)".
std::string audit_text(std::string_view value);

}  // namespace firestop::guest
