// The containers' network namespace: one for the whole run, with nothing but a loopback device that is up.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

// Makes it and comes back; the descriptor is for setns(2). Before "ready", since it costs more than all other
// namespaces together and a snapshot template can hold it.
Result<UniqueFd> make_container_network();

}  // namespace firestop::guest
