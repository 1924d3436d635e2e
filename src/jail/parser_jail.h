// A jail for programs that parse what a sandbox sent back (git): as vm_jail.h, with folders of the host that
// it reads or writes at their own paths, and limits of time. It starts nothing else, and sees no file but its
// own program, libraries and those folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "jail/jail_parts.h"
#include "jail/needed_files.h"
#include "jail/vm_jail.h"

namespace firestop::jail {

struct Folder {
  std::string path;  // absolute, without links
  bool writable = false;
};

struct ParserLimits {
  uint64_t address_space = 0;  // bytes (RLIMIT_AS); 0: no limit
  uint64_t file_size = 0;      // bytes (RLIMIT_FSIZE); 0: no limit
  uint64_t processor_seconds = 0;
};

// Prepared once for several children of one job.
class ParserJail {
 public:
  // `program` is looked up in PATH. A later folder may lie in an earlier one. Root's children are `owner`,
  // whose files they work on, without any of root's capabilities; an ordinary user's are that user. Errors:
  // "process.not_found", "jail.program", "jail.seccomp".
  static Result<ParserJail> prepare(const std::string& program, std::vector<Folder> folders, Identity owner);

  // The same with other folders.
  ParserJail seeing(std::vector<Folder> folders) const;

  // Starts `command`, whose program is replaced; LD_LIBRARY_PATH is added to its environment. Errors:
  // "jail.unavailable" when the host refuses a part: nothing has run then.
  Result<Child> start(Command command, const ParserLimits& limits) const;

  // For tests: this step fails.
  void break_at(Step step) { broken_ = step; }

 private:
  ParserJail() = default;

  std::string program_, filter_;
  NeededFiles needed_;
  std::vector<Folder> folders_;
  Identity identity_{};
  std::optional<Step> broken_;
};

}  // namespace firestop::jail
