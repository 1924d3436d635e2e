// Unpacking an archive that a sandbox made, below one directory. Runs in a child of its own; see
// import_archive.
#pragma once

#include "base/result.h"
#include "workspace/workspace.h"

namespace firestop::workspace {

// `archive` is a readable descriptor at the archive's start, `root` an empty directory. Every path is opened
// beneath it without following any link. Errors name the member: "import.bad_archive", "import.bad_member",
// "import.too_large". What was unpacked before an error stays: the caller removes `root`.
Result<ImportedFiles> unpack_archive(int archive, int root, const ImportLimits& limits);

}  // namespace firestop::workspace
