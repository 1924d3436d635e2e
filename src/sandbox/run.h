// One sandbox's life, from manifest to terminal record: the only place that wires the parts together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/exit_status.h"
#include "base/result.h"
#include "sandbox/plan.h"
#include "sandbox/run_store.h"

namespace firestop::sandbox {

// What is told on the way; any may be empty. All run on the caller's thread.
struct RunEvents {
  std::function<void(const std::string&)> notice;    // said once each: no KVM, template rebuilt, ...
  std::function<void(const std::string&)> progress;  // long steps: image build
};

struct RunEnd {
  int status = 0;                  // what `firestop run` exits with
  std::optional<Error> error;      // why, when it is Firestop's own status
  std::vector<Diagnostic> faults;  // of the manifest, with `text` for carets
  std::string text;
  RunRecord record;                // id is empty when nothing was started
  bool errors_open = false;        // the command's last line on stderr has no end
  std::vector<std::string> notes;  // results that came back only in part, kills for want of memory, ...
};

// Runs to the end. Blocks; owns stdin, stdout and stderr and handles SIGINT, SIGTERM, SIGHUP meanwhile.
RunEnd run(const RunRequest& request, const RunEvents& events);

}  // namespace firestop::sandbox
