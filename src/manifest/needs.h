// What a manifest asks for and this version cannot give. A run that needs it does not start: nothing is
// left out silently, and nothing that is not granted is there by default.
#pragma once

#include "base/result.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

// "manifest.unsupported" with every need that cannot be met, one a line: kind: verdict, images from a
// registry, repositories of another host.
Result<void> check_supported(const Manifest& manifest);

}  // namespace firestop::manifest
