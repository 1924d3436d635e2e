// The inside of a container, as seen by its first process between clone(2) and the reaper.
#pragma once

#include "base/result.h"
#include "guest/container_run.h"

namespace firestop::guest {

// Called in the new namespaces, as root: its own view of the file system, devices, loopback, name. Order and
// masks follow the OCI runtime specification's defaults for Linux.
Result<void> build_container(const ContainerSettings& settings);

// Gives up everything for good: capabilities in all five sets, the right to gain any, uid and groups, and the
// system calls outside the filter.
Result<void> drop_privileges(const ContainerSettings& settings);

// Attack tests only (ContainerSettings::outside): the container's root and network with the machine's own
// /proc, /sys and /dev, and no privilege dropped.
Result<void> enter_root_for_test(const ContainerSettings& settings);

}  // namespace firestop::guest
