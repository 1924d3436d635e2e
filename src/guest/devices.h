// virtio-blk disks, found by the serial that the host gave them.
//
// Disks get their driver late and one by one: each costs several milliseconds to probe without KVM and most
// slots are not used. It is also what makes snapshot clones right: a disk that is bound after the clone
// started has the clone's size and content, and no page of the template's in the cache.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::guest {

class Disks {
 public:
  // The device node of the disk with that serial ("/dev/vda"); binds disks until it is found.
  Result<std::string> find(const std::string& serial);

 private:
  Result<void> list();
  std::vector<std::string> slots_;            // disks without a driver: names below /sys/bus/virtio/devices
  std::map<std::string, std::string> nodes_;  // serial to node
  size_t tried_ = 0;
  bool listed_ = false;
  bool from_the_end_ = false;
};

}  // namespace firestop::guest
