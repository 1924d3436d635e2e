// The file systems of a run: the container's root over the image, the workspace over its entries, each
// repository over its image. All that is written goes to the run's own disk, so the disk's size is the cap.
#pragma once

#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "channel/messages.h"
#include "guest/devices.h"
#include "guest/inside.h"

namespace firestop::guest {

// Before "ready": the root image, read-only.
Result<void> mount_image(Disks& disks);

// The run's own disk; and on it the directory that becomes the upper layer of the container's root, empty.
Result<void> mount_scratch(Disks& disks);
inline constexpr char kRootUpper[] = "/mnt/scratch/root/upper";
// The overlay that is the container's root (kRoot).
Result<void> mount_root();
// Mounts /workspace with repositories, read-only mounts and the memory directory, and makes the output
// directories. `owner` is the account that the workspace belongs to. Returns the roots of the read-only
// mounts, for take_away().
Result<std::vector<UniqueFd>> mount_workspace(const channel::Start& start, Owner owner, Disks& disks);

// Unmounts, wherever the mount points have been moved to: what is mounted is in nothing that is handed over.
Result<void> take_away(const std::vector<UniqueFd>& mounts);

}  // namespace firestop::guest
