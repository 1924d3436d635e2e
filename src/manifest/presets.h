// Rules that many sandboxes need, as snippets of manifests in presets/: `egress: [{preset: npm}]`. They are
// expanded when a manifest is loaded, so that explain, digests and signatures are about the rules themselves,
// and firestop.lock pins what a name stood for.
#pragma once

#include <span>
#include <string_view>

namespace firestop::manifest {

struct Preset {
  std::string_view name;  // "npm"
  std::string_view text;  // presets/npm.yaml, as it was when this program was built
};
std::span<const Preset> all_presets();  // sorted by name
const Preset* find_preset(std::string_view name);

}  // namespace firestop::manifest
