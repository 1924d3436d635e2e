// What a clone of a snapshot must not keep from its template: the random generator's state and the time.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace firestop::guest {

// Mixes the host's bytes into the kernel's generator and makes it reseed at once (random(4)).
Result<void> reseed(std::string_view seed);
Result<void> set_clock(int64_t nanoseconds_since_1970);

}  // namespace firestop::guest
