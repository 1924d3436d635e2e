// From the kernel's hand-over to a machine that waits for orders: kernel file systems, modules, a root that
// containers can pivot away from. Nothing here depends on the run: snapshot templates are taken afterwards.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::guest {

// Where things are, as PID 1 sees them after boot().
inline constexpr char kImage[] = "/mnt/image";      // the root image, EROFS
inline constexpr char kScratch[] = "/mnt/scratch";  // the run's own disk
inline constexpr char kReadOnly[] = "/mnt/ro";      // one directory a read-only disk, by serial
inline constexpr char kRoot[] = "/mnt/root";        // the container's root
inline constexpr char kEmpty[] = "/mnt/empty";      // an empty directory, to mask others with
inline constexpr char kCgroups[] = "/sys/fs/cgroup";

Result<void> boot();

}  // namespace firestop::guest
