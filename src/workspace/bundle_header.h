// The text before the pack of a git bundle (git's Documentation/gitformat-bundle.txt), versions 2 and 3.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::workspace {

struct BundleHeader {
  std::string object_format;               // "sha1" or "sha256"
  std::vector<std::string> prerequisites;  // object ids
  std::string tip;                         // of the only reference
  std::string ref;
  size_t bytes = 0;  // where the pack starts
};

inline constexpr size_t kMaxBundleHeader = 256u << 10;

// `text` is the start of a bundle, at most kMaxBundleHeader bytes of it. Exactly one reference; no capability
// but object-format; ids of the right length. Errors: "import.bad_bundle".
Result<BundleHeader> parse_bundle_header(std::string_view text);

}  // namespace firestop::workspace
