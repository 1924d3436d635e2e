// What lock, sign and verify begin with: the manifest and its lock, read and in their canonical form.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "manifest/lock.h"
#include "manifest/manifest.h"

namespace firestop::cli {

// The manifest of FILE without faults; nullopt if it has some, which then are printed (the status is 240).
// With
// --json they are the error "manifest.invalid".
Result<std::optional<manifest::Manifest>> load_manifest(const ParsedArgs& args, Context& context);

struct Drawing {
  manifest::Manifest manifest;
  std::optional<manifest::Lock> lock;  // a matching one, if there is one
  std::string canonical, digest;
};
// As load_manifest, with its lock. Errors: "lock.*".
Result<std::optional<Drawing>> load_drawing(const ParsedArgs& args, Context& context);

}  // namespace firestop::cli
