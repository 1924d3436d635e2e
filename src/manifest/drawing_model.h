// What is drawn, before it has a place: the crossings of a compartment, each with its seal and, in the
// drawing of a change, its mark.
#pragma once

#include <string>
#include <vector>

#include "manifest/diff.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

enum class Seal { kCopy, kReadOnly, kChecked, kCapped, kFiltered };
enum class Mark { kNone, kNew, kWider, kNarrower, kGone, kChanged };

struct Crossing {
  std::string name, what, seal_words;
  Seal seal{};
  Mark mark = Mark::kNone;
  size_t lines = 1;  // that `what` may take
};

// Without the manifest before (nullptr), nothing has a mark.
struct Crossings {
  std::vector<Crossing> in, out, talk;
};
Crossings crossings_of(const Manifest& manifest, const Manifest* before, const std::vector<Change>& changes);

// Of a cap or capability, by its `crossing`.
Mark mark_of(const std::vector<Change>& changes, const std::string& crossing);

// No more than `most`: what opens is kept first, then what is marked, then in order; the last says how many
// are left out.
void group_beyond(std::vector<Crossing>& crossings, size_t most);

// "opens", "closes", "changes", as a class of the drawing; "" for none.
const char* effect_class(Mark mark);
const char* label_of(Mark mark);  // "NEW", "WIDER", ...

}  // namespace firestop::manifest
