// What a change to a manifest opens and closes: what a reviewer asks first.
//
// A change opens if afterwards something can come in, go out, be talked to, be done inside or be used up that
// could not before. What is read in doubt, opens: a pattern that is not plainly within one that was there
// before counts as more. The comparison is of what is enforced: spellings, comments and the order of keys are
// no change, and neither is a default that is written out.
#pragma once

#include <string>
#include <vector>

#include "codec/json.h"
#include "manifest/explain.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

enum class Effect { kOpens, kCloses, kChanges };  // kChanges: neither

struct Change {
  Effect effect{};
  std::string field;          // "workspace.entries.repo.ref", "egress.api.example.com.methods"
  std::string before, after;  // as people read it, on one line; empty where there was or is nothing
  std::string words;          // "longer rating", "file comes in"
  // What it belongs to: "entry PATH", "skill NAME", "capability NAME", the field of a cap, "rule N" with the
  // place of an egress rule in the new manifest, or "old rule N" of one that is gone, in the old one.
  std::string crossing;
};

// What opens, then what closes, then the others; within each in the order of the manifest.
std::vector<Change> diff(const Manifest& before, const Manifest& after);

// For a terminal; names of files as they were given.
std::string diff_text(const Manifest& before, const Manifest& after, const std::vector<Change>& changes,
                      Colour colour);
// {"name", "file", "old", "opens": [], "closes": [], "changes": []}, each change {"field", "before", "after",
// "words"} with null for a before or after that is not there.
codec::Json diff_json(const Manifest& before, const Manifest& after, const std::vector<Change>& changes);

const char* to_string(Effect effect);  // "opens", "closes", "changes"

}  // namespace firestop::manifest
