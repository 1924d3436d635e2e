// Where a record lies that somebody named, and whose signatures count.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "evidence/host_key.h"

namespace firestop::cli {

struct RecordPlace {
  std::string directory;  // of the record
  std::string run;        // its id; empty when a directory was named
  bool alive = false;     // the run's owner lives, so the record grows
};

// RUN as in `show`; what has a slash in it is a directory: a record's, or a run's with one in it.
Result<RecordPlace> find_record(const std::string& named, Context& context);
// Of --signers, or this user's own key. "usage.signers".
Result<std::vector<evidence::PublicKey>> trusted_signers(const ParsedArgs& args);

OptionSpec signers_option();
PositionalSpec run_or_directory();  // "RUN"

}  // namespace firestop::cli
