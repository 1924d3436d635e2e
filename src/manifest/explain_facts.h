// What explain says, before it is text or JSON.
#pragma once

#include <string>
#include <vector>

#include "codec/json.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

// A cap: its field, how people read it, its value for programs (null: not capped) and the unit of that.
struct Cap {
  std::string field, label, text;
  codec::Json value;
  std::string unit;
  bool declared = false;
};
std::vector<Cap> caps_of(const Manifest& manifest);

// What the sandbox does not get, and what that means.
struct Denied {
  std::string what, meaning;
};
std::vector<Denied> denied_by(const Manifest& manifest);

inline constexpr Capability kAllCapabilities[] = {Capability::kShell, Capability::kFilesystem,
                                                  Capability::kSkills, Capability::kMemory,
                                                  Capability::kCompaction};
const char* meaning_of(Capability capability);  // of having it

// The variables that Firestop sets; PATH only if the manifest does not.
std::vector<std::string> variables_set_by_firestop(const Manifest& manifest);

// One line that a terminal can show, at most `most` bytes.
std::string one_line(std::string_view text, size_t most = 200);

}  // namespace firestop::manifest
