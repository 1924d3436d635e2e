#include "guest/devices.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr char kBus[] = "/sys/bus/virtio/devices/";
constexpr char kDriver[] = "/sys/bus/virtio/drivers/virtio_blk/";
constexpr char kBlockDevice[] = "0x0002";  // virtio 1.1, section 5

// The names in a directory, without those that begin with a dot.
std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  return names;
}

unsigned long number_of(const std::string& device) {
  return ::strtoul(device.c_str() + strlen("virtio"), nullptr, 10);
}

}  // namespace

Result<void> Disks::list() {
  if (listed_) return {};
  listed_ = true;
  for (const std::string& name : names_in(kBus)) {
    const auto kind = read_kernel_file(kBus + name + "/device");
    if (!kind || *kind != kBlockDevice) continue;
    if (::access((kBus + name + "/driver").c_str(), F_OK) == 0)
      TRY(write_kernel_file(std::string(kDriver) + "unbind", name));
    slots_.push_back(name);
  }
  std::sort(slots_.begin(), slots_.end(),
            [](const std::string& a, const std::string& b) { return number_of(a) < number_of(b); });
  return {};
}

Result<std::string> Disks::find(const std::string& serial) {
  TRY(list());
  if (const auto known = nodes_.find(serial); known != nodes_.end()) return known->second;
  while (!slots_.empty()) {
    // Machines list their disks either way round. Root comes first: where it is shows the way.
    const bool last = from_the_end_ || (tried_ == 1 && nodes_.count("root") == 0);
    const std::string slot = last ? slots_.back() : slots_.front();
    slots_.erase(last ? slots_.end() - 1 : slots_.begin());
    ++tried_;
    TRY(write_kernel_file(std::string(kDriver) + "bind", slot));
    const std::vector<std::string> nodes = names_in(kBus + slot + "/block");
    if (nodes.size() != 1) return fail("guest.disk", "disk " + slot + " did not come up");
    TRY_ASSIGN(const std::string found, read_kernel_file(kBus + slot + "/block/" + nodes[0] + "/serial"));
    nodes_[found] = "/dev/" + nodes[0];
    if (found == "root") from_the_end_ = last;
    if (found == serial) return nodes_[found];
  }
  return fail("guest.disk", "the machine has no disk \"" + serial + "\"");
}

}  // namespace firestop::guest
