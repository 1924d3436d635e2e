// The files in the container's root that say what run this is.
#pragma once

#include "base/result.h"
#include "channel/messages.h"
#include "guest/inside.h"

namespace firestop::guest {

// /etc/hostname, /etc/hosts, an empty /etc/resolv.conf, /run/firestop/capabilities.json, and /tmp for all.
Result<void> write_run_files(const channel::Start& start, const Inside& root);

}  // namespace firestop::guest
