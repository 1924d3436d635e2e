// Makes the clients in a container trust the sandbox's own certificate authority, without flags: it is added
// to the image's bundles, wherever a distribution has them, and named in the environment for those that have
// a list of their own.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"
#include "guest/inside.h"

namespace firestop::guest {

// Writes into the container's layer over `image`. Nothing without Start::authority.
Result<void> write_trust(const channel::Start& start, const Inside& image, const Inside& upper);

// "NAME=value" for every process of the container; none without Start::authority.
std::vector<std::string> trust_environment(const channel::Start& start);

}  // namespace firestop::guest
