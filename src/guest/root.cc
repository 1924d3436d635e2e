#include "guest/root.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/boot.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr unsigned long kData = MS_NOSUID | MS_NODEV;

// A read-only disk below kReadOnly; the mount point.
Result<std::string> mount_disk(Disks& disks, const std::string& serial) {
  TRY_ASSIGN(const std::string node, disks.find(serial));
  const std::string target = std::string(kReadOnly) + "/" + serial;
  TRY(make_directory(target, 0755));
  TRY(mount_at(node, target, "erofs", kData | MS_RDONLY | MS_NOATIME));
  return target;
}

// A directory on the scratch disk, for the upper layer `name`.
Result<std::string> make_layer(const std::string& name, Owner owner) {
  const std::string base = std::string(kScratch) + "/" + name;
  TRY(make_directory(base, 0700));
  TRY(make_directory(base + "/upper", 0755));
  if (::chown((base + "/upper").c_str(), owner.uid, owner.gid) != 0)
    return fail_errno("guest.overlay", "cannot give away " + base);
  return base;
}

// `lower` under the layer at `base`.
//  - xino=on: a file's inode number is, in its lower 32 bits, the image's. The index of a repository image
//    holds these, so that git finds nothing changed and reads no file.
//  - redirect_dir=on: directories of the image can be renamed; without it rename(2) says EXDEV.
Result<void> mount_overlay(const std::string& lower, const std::string& base, const std::string& target) {
  TRY(make_directory(base + "/work", 0700));
  return mount_at(
      "overlay", target, "overlay", kData | MS_NOATIME,
      "lowerdir=" + lower + ",upperdir=" + base + "/upper,workdir=" + base + "/work,xino=on,redirect_dir=on");
}

}  // namespace

Result<void> mount_image(Disks& disks) {
  TRY_ASSIGN(const std::string node, disks.find("root"));
  return mount_at(node, kImage, "erofs", kData | MS_RDONLY | MS_NOATIME);
}

Result<void> mount_scratch(Disks& disks) {
  TRY_ASSIGN(const std::string node, disks.find("scratch"));
  TRY(mount_at(node, kScratch, "ext4", kData | MS_NOATIME, "noinit_itable"));
  TRY(make_layer("root", {}));
  return {};
}

Result<void> mount_root() {
  return mount_overlay(kImage, std::string(kScratch) + "/root", kRoot);
}

Result<void> mount_workspace(const channel::Start& start, Owner owner, Disks& disks) {
  TRY_ASSIGN(const Inside root, Inside::open(kRoot));
  TRY_ASSIGN(const UniqueFd point, root.make_directories("workspace", owner));
  TRY_ASSIGN(const std::string layer, make_layer("workspace", owner));
  if (start.entries_serial.empty()) {
    TRY(mount_at(layer + "/upper", path_of(point), nullptr, MS_BIND));
  } else {
    TRY_ASSIGN(const std::string entries, mount_disk(disks, start.entries_serial));
    TRY(mount_overlay(entries, layer, path_of(point)));
  }

  // Outer paths come first: a mount below another needs that other one.
  struct Point {
    std::string path, serial, layer;
  };
  std::vector<Point> points;
  for (size_t i = 0; i < start.repositories.size(); ++i)
    points.push_back(
        {start.repositories[i].path, start.repositories[i].serial, "repository" + std::to_string(i)});
  for (const auto& mount : start.mounts) points.push_back({mount.path, mount.serial, ""});
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.path < b.path; });
  for (const Point& p : points) {
    TRY_ASSIGN(const std::string disk, mount_disk(disks, p.serial));
    TRY_ASSIGN(const UniqueFd at, root.make_directories("workspace/" + p.path, owner));
    if (p.layer.empty()) {
      TRY(mount_at(disk, path_of(at), nullptr, MS_BIND));
    } else {
      TRY_ASSIGN(const std::string base, make_layer(p.layer, owner));
      TRY(mount_overlay(disk, base, path_of(at)));
    }
  }
  for (const auto& output : start.outputs) TRY(root.make_directories("workspace/" + output.path, owner));
  return {};
}

}  // namespace firestop::guest
