#include "guest/devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/file.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr char kBus[] = "/sys/bus/virtio/devices/";
constexpr char kDriver[] = "/sys/bus/virtio/drivers/virtio_blk/";
constexpr int kBoundAhead = 6;             // the scratch disk, and more read-only ones than most runs have
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

Result<uint64_t> size_of(const std::string& node) {
  TRY_ASSIGN(const UniqueFd fd, open_file(node, O_RDONLY));
  uint64_t bytes = 0;
  if (::ioctl(fd.get(), BLKGETSIZE64, &bytes) != 0)
    return fail_errno("guest.disk", "cannot ask for the size of " + node);
  return bytes;
}

// Drops what looking for partitions left in the cache: in a clone that is the template's.
Result<void> forget_blocks(const std::string& node) {
  TRY_ASSIGN(const UniqueFd fd, open_file(node, O_RDONLY));
  if (::ioctl(fd.get(), BLKFLSBUF) != 0)
    return fail_errno("guest.disk", "cannot drop the cached blocks of " + node);
  return {};
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

Result<Disks::Disk> Disks::bind_next() {
  Disk disk;
  disk.slot = slots_.front();
  slots_.erase(slots_.begin());
  TRY(write_kernel_file(std::string(kDriver) + "bind", disk.slot));
  const std::string blocks = kBus + disk.slot + "/block";
  const std::vector<std::string> nodes = names_in(blocks);
  if (nodes.size() != 1) return fail("guest.disk", "disk " + disk.slot + " did not come up");
  disk.node = "/dev/" + nodes[0];
  TRY_ASSIGN(disk.serial, read_kernel_file(blocks + "/" + nodes[0] + "/serial"));
  return disk;
}

Result<void> Disks::bind_ahead() {
  TRY(list());
  for (int bound = 0; bound < kBoundAhead && !slots_.empty(); ++bound) {
    TRY_ASSIGN(const Disk disk, bind_next());
    TRY_ASSIGN(const uint64_t size, size_of(disk.node));
    if (size < kBoundless) {  // real: no template, or none that knows of this
      slots_.insert(slots_.begin(), disk.slot);
      return write_kernel_file(std::string(kDriver) + "unbind", disk.slot);
    }
    nodes_[disk.serial] = disk.node;
  }
  return {};
}

Result<std::string> Disks::find(const std::string& serial) {
  TRY(list());
  while (nodes_.count(serial) == 0 && !slots_.empty()) {
    TRY_ASSIGN(const Disk disk, bind_next());
    nodes_[disk.serial] = disk.node;
  }
  const auto found = nodes_.find(serial);
  if (found == nodes_.end()) return fail("guest.disk", "the machine has no disk \"" + serial + "\"");
  TRY(forget_blocks(found->second));
  return found->second;
}

}  // namespace firestop::guest
