// From what a session collected to branches and files of the host.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/plan.h"
#include "sandbox/run_store.h"
#include "sandbox/session.h"

namespace firestop::sandbox {

std::string bundle_path(const OwnedRun& run, size_t repository);
std::string archive_path(const OwnedRun& run);

// Imports every repository and the outputs, as far as each can be had; fills the record. The error is the
// first that occurred, the others become notes; what could be imported stays.
Result<void> import_results(const Plan& plan, OwnedRun& run, const SessionEnd& end,
                            std::vector<std::string>& notes);

}  // namespace firestop::sandbox
