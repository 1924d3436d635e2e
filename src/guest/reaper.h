// The first process of a container.
#pragma once

#include <optional>

#include "guest/container_run.h"

namespace firestop::guest {

// Builds the container, starts the command, reaps whatever ends, and tells what happened over `control`
// (see Report). Descriptors other than the command's and `control` are closed. Never returns: with a
// `control` it stays until it is killed, so that what the command left behind can be counted; without one it
// ends with the command's status.
[[noreturn]] void run_reaper(const ContainerSettings& settings, const ContainerCommand& command,
                             std::optional<Terminal> terminal, int control);

}  // namespace firestop::guest
