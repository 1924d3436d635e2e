// "What can this thing touch?": what a manifest lets in and out, what caps it, and what it does not grant.
#pragma once

#include <string>

#include "codec/json.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

enum class Colour { kOff, kOn };  // kOn: ANSI SGR sequences

// For a terminal of 80 columns. Text of the manifest is made printable: no control characters come out.
std::string explain_text(const Manifest& manifest, Colour colour);
// The same for programs. Sizes in bytes, times in milliseconds; docs/manifest.md names the members.
codec::Json explain_json(const Manifest& manifest);

}  // namespace firestop::manifest
