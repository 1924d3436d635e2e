// Audit records, a line each, of which the first byte is the type; and the kernel's binary messages. What
// comes out is bounded, whatever goes in.
#include <linux/audit.h>

#include "check.h"
#include "guest/evidence/audit_record.h"
#include "guest/evidence/interpreter.h"
#include "guest/evidence/proc_events.h"
#include "guest/evidence/task_costs.h"

using namespace firestop::guest;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  constexpr uint16_t kTypes[] = {AUDIT_SYSCALL, AUDIT_EXECVE, AUDIT_CWD, AUDIT_PATH, AUDIT_EOE, AUDIT_GET};
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  AuditAssembler assembler;
  std::string_view rest = all;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty()) continue;
    const auto event = assembler.take(kTypes[static_cast<unsigned char>(line[0]) % 6], line.substr(1));
    if (!event) continue;
    FUZZ_CHECK(event->argc >= event->argv.size());
    FUZZ_CHECK(event->argv.size() <= AuditAssembler::kMostCount);
    FUZZ_CHECK(event->paths.size() <= AuditAssembler::kMostPaths);
    for (int language = 0; language <= static_cast<int>(Language::kOther); ++language) {
      const CodeArguments arguments = code_arguments(static_cast<Language>(language), event->argv);
      FUZZ_CHECK(arguments.commands.size() + arguments.files.size() <= event->argv.size());
    }
  }
  (void)parse_proc_event(all);
  (void)parse_task_cost(all);
  return 0;
}
