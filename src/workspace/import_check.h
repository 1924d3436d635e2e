// What a sandbox's commits must fulfil before the source repository hears of them.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "workspace/quarantine.h"
#include "workspace/workspace.h"

namespace firestop::workspace {

struct CheckedCommits {
  uint32_t new_commits = 0;
  bool uncommitted = false;  // the tip is the commit that the guest's export made
};

// The subject of the commit that the export makes of what was left uncommitted.
inline constexpr char kUncommittedSubject[] = "Uncommitted work of the sandbox";

// `quarantine` holds nothing but the pack that came (fsck has seen every object); it gets the source's
// objects as alternates on the way. Errors, all "import.*":
//   too_large        objects unpacked beyond limits.max_bytes, or files beyond reason
//   foreign_object   refers to an object that neither came along nor is in the history of the base commit:
//                    a guest may know the id of a private object, and must not get it published
//   incomplete       refers to an object that is nowhere
//   bad_path         a name that means something else to a file system or to git
//   link_out         a new symbolic link that is absolute or leaves the repository
//   case_twins       two new names that are one on a file system that folds case
Result<CheckedCommits> check_commits(const RepoSource& source, const Quarantine& quarantine,
                                     const std::string& tip, const ImportLimits& limits);

}  // namespace firestop::workspace
