// virtio-blk disks, found by the serial that the host gave them.
//
// A disk that got its driver before a snapshot has, in a clone, the size and the cached blocks of the
// template's disk. So disks get their driver late, one by one and only where they are used, which also saves
// the time to probe some twenty of them.
//
// But probing the first one costs a clone some 50 ms without KVM. A template can save that: it gives its
// disks a size that no real one has (kBoundless). Such disks are bound ahead and kept; a clone's are smaller
// than their driver believes, and since file systems know their own size nobody reads beyond it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::guest {

inline constexpr uint64_t kBoundless = 1ull << 40;  // bytes

class Disks {
 public:
  // Before "ready": binds what can stay bound, if this is a template.
  Result<void> bind_ahead();
  // The device node of the disk with that serial ("/dev/vda"), with nothing cached; binds until it is found.
  Result<std::string> find(const std::string& serial);

 private:
  struct Disk {
    std::string slot, node, serial;
  };
  Result<void> list();
  Result<Disk> bind_next();

  std::vector<std::string> slots_;            // disks without a driver: names below /sys/bus/virtio/devices
  std::map<std::string, std::string> nodes_;  // serial to node
  bool listed_ = false;
};

}  // namespace firestop::guest
