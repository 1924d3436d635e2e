// The drawing: a compartment with its doors, the seal on each, and the rating, as one SVG document.
//
// Laid out from widths of characters and never from a measurement, so that the same manifest gives the same
// bytes everywhere, and no text meets another whatever the fonts are. 1200 units wide, as high as is needed.
// docs/drawing.md says what each mark means.
#pragma once

#include <string>
#include <vector>

#include "manifest/diff.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

// What the title block says beside the manifest.
struct TitleBlock {
  std::string digest;     // of the canonical form
  std::string lock;       // "none", "firestop.lock", "outdated"
  std::string signature;  // "not checked here"
};

std::string draw_svg(const Manifest& manifest, const TitleBlock& block);
// The same with a mark on what differs from `before`, and a table of the changes.
std::string draw_diff_svg(const Manifest& before, const Manifest& manifest,
                          const std::vector<Change>& changes, const TitleBlock& block);

}  // namespace firestop::manifest
