// Text to Manifest, strictly: everything that is wrong is found in one pass, each with its position.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/result.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

struct Loaded {
  Manifest manifest;               // meaningful only if `faults` is empty
  std::vector<Diagnostic> faults;  // in the order of their positions
  std::string text;                // what was read, for carets and digests
};

// `file` is a path for messages and decides the folder; YAML 1.2 or JSON by content. At most 1 MiB.
Loaded load_text(const std::string& file, std::string_view text);
// Fails ("manifest.unreadable") only if the file can't be read; faults of its content are in Loaded.
Result<Loaded> load_file(const std::string& file);

}  // namespace firestop::manifest
