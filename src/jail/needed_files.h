// What a dynamically linked program needs to be started: found by reading ELF files (elf(5), ld.so(8)), not
// by running anything.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::jail {

struct NeededFiles {
  // Absolute paths without links in their directories: the program, its loader, every library.
  std::vector<std::string> files;
  // Where the libraries lie, for LD_LIBRARY_PATH: in a jail there is no ld.so.cache.
  std::vector<std::string> directories;
};

// Of `program` and of `modules`, which it loads later (dlopen). Errors: "jail.program", when a file is no
// 64-bit ELF file of this machine, or needs what cannot be found.
Result<NeededFiles> needed_files(const std::string& program, const std::vector<std::string>& modules);

}  // namespace firestop::jail
