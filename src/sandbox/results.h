// From what a session collected to branches and files of the host.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/memory_store.h"
#include "sandbox/plan.h"
#include "sandbox/run_store.h"
#include "sandbox/session.h"

namespace firestop::sandbox {

std::string bundle_path(const OwnedRun& run, size_t repository);
std::string archive_path(const OwnedRun& run);

std::string memory_archive_path(const OwnedRun& run);
// How long the archive of a memory directory may be that has no more than `most`.
uint64_t memory_archive_limit(const workspace::MemoryCap& most);
workspace::MemoryCap memory_cap(const manifest::Manifest& manifest);

// Imports every repository, the outputs, and into `memory`, if it is valid, what is to be kept, as far as
// each can be had; fills the record. The error is the first that occurred, the others become notes; what
// could be imported stays.
Result<void> import_results(const Plan& plan, OwnedRun& run, const SessionEnd& end, OwnedMemory& memory,
                            std::vector<std::string>& notes);

}  // namespace firestop::sandbox
