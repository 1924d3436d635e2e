// What is signed: the manifest as it will be enforced, and its lock, as one text.
//
// The text is RFC 8785 JSON of {"lock": LOCK or null, "manifest": ...}. It is made from the typed manifest
// and not from the document, so that YAML or JSON, the order of keys, comments and spellings ("90m", "1h30m")
// make no difference, while every value that is enforced is in it: a default stands there like a declared
// value, so that a Firestop with other defaults asks for another signature. Left out are only the document's
// place and positions, and in entries, rules, users and credentials what is empty or off.
#pragma once

#include <string>

#include "base/result.h"
#include "manifest/lock.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

// One line without a newline. `lock` may be nullptr. Errors: "json.not_canonical" (a manifest that was not
// made by the loader).
Result<std::string> canonical_json(const Manifest& manifest, const Lock* lock);
// SHA-256 of it, 64 lower-case digits: the drawing's name.
Result<std::string> canonical_digest(const Manifest& manifest, const Lock* lock);

}  // namespace firestop::manifest
