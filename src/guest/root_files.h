// The files of a run in the container's root: who is there, what the machine is called, what is granted.
// They are written into the overlay's upper layer before it is mounted: nothing of the image's can lead
// elsewhere, and no file is copied up.
#pragma once

#include "base/result.h"
#include "channel/messages.h"

namespace firestop::guest {

// /etc/{passwd,group,hostname,hosts,resolv.conf}, homes, /run/firestop/capabilities.json, /tmp for all, and
// the directories that are mounted on.
Result<void> write_root_files(const channel::Start& start);

}  // namespace firestop::guest
