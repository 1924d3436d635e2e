// The part of a diff that is about who may be talked to.
#pragma once

#include <vector>

#include "manifest/diff.h"

namespace firestop::manifest {

// In the order of the rules of `after`; what is gone comes last.
std::vector<Change> diff_egress(const Manifest& before, const Manifest& after);

}  // namespace firestop::manifest
