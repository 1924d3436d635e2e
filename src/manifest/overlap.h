// Rules that say two things about one request: faults, since a reader would take one of them for the truth.
#pragma once

#include "manifest/loader.h"

namespace firestop::manifest {

// - one destination by two protocols: a connection is one of them before anything was read
// - two credentials for one request
// - a rule that allows nothing which a wider one does not: whoever wrote it takes it for a restriction
void check_overlaps(Loading& loading);

}  // namespace firestop::manifest
