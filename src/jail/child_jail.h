// For children of ours that need no network, and see too much of the host to be held in a parser_jail.h.
#pragma once

#include "base/process.h"

namespace firestop::jail {

// `command` is started in network, IPC and host name namespaces of its own, an ordinary user's also in a user
// namespace in which it stays the same user. Where the host refuses that, spawn() fails ("process.start" or
// "jail.unavailable"): nothing is parsed outside. Memory, time and file sizes are the caller's to bound.
void without_network(Command& command);

}  // namespace firestop::jail
