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
  std::string target = std::string(kReadOnly) + "/" + serial;
  TRY(make_directory(target, 0755));
  TRY(mount_at(node, target, "erofs", kData | MS_RDONLY | MS_NOATIME));
  return target;
}

// A directory on the scratch disk, for the upper layer `name`.
Result<std::string> make_layer(const std::string& name, Owner owner) {
  std::string base = std::string(kScratch) + "/" + name;
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

// A mount in a repository is no part of it: git there is told to leave it out. Written into the layer, where
// it stands before the image's own (empty) file.
Result<void> exclude_mounts(const channel::Start& start, const channel::RepositoryMount& repository,
                            const std::string& layer, Owner owner) {
  std::string lines;
  for (const auto& mount : start.mounts) {
    if (!mount.path.starts_with(repository.path + "/")) continue;
    lines += '/';
    for (const char c : mount.path.substr(repository.path.size() + 1)) {
      if (std::string_view("*?[\\ ").find(c) != std::string_view::npos) lines += '\\';
      lines += c;
    }
    lines += '\n';
  }
  if (lines.empty()) return {};
  TRY_ASSIGN(const Inside upper, Inside::open(layer + "/upper"));
  TRY_ASSIGN(const UniqueFd info, upper.make_directories(".git/info", owner));
  TRY(upper.write(".git/info/exclude", lines, 0644));
  if (::fchownat(AT_FDCWD, (path_of(info) + "/exclude").c_str(), owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) !=
      0)
    return fail_errno("guest.overlay", "cannot give away .git/info/exclude");
  return {};
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

Result<std::vector<UniqueFd>> mount_workspace(const channel::Start& start, Owner owner, Disks& disks) {
  TRY_ASSIGN(const Inside root, Inside::open(kRoot));
  TRY_ASSIGN(const UniqueFd point, root.make_directories("workspace", owner));
  TRY_ASSIGN(const std::string layer, make_layer("workspace", owner));
  // Always an overlay: the disk itself must not be what is watched (evidence/file_watch.h), since every layer
  // lies on it.
  std::string entries = kEmpty;
  if (!start.entries_serial.empty()) {
    TRY_ASSIGN(entries, mount_disk(disks, start.entries_serial));
  }
  TRY(mount_overlay(entries, layer, path_of(point)));

  // Outer paths come first: a mount below another needs that other one.
  struct Point {
    std::string path, serial, layer;
    const channel::RepositoryMount* repository;  // of a repository
  };
  std::vector<Point> points;
  for (size_t i = 0; i < start.repositories.size(); ++i)
    points.push_back({start.repositories[i].path, start.repositories[i].serial,
                      "repository" + std::to_string(i), &start.repositories[i]});
  for (const auto& mount : start.mounts) points.push_back({mount.path, mount.serial, "", nullptr});
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.path < b.path; });
  std::vector<UniqueFd> mounts;
  for (const Point& p : points) {
    TRY_ASSIGN(const std::string disk, mount_disk(disks, p.serial));
    TRY_ASSIGN(const UniqueFd at, root.make_directories("workspace/" + p.path, owner));
    if (p.layer.empty()) {
      TRY(mount_at(disk, path_of(at), nullptr, MS_BIND));
      TRY_ASSIGN(mounts.emplace_back(), root.open_at("workspace/" + p.path, O_PATH | O_DIRECTORY));
    } else {
      TRY_ASSIGN(const std::string base, make_layer(p.layer, owner));
      TRY(exclude_mounts(start, *p.repository, base, owner));
      TRY(mount_overlay(disk, base, path_of(at)));
    }
  }
  // Always a mount, so that it cannot be moved away.
  for (const auto& memory : start.memory) {
    TRY_ASSIGN(const std::string disk, mount_disk(disks, memory.serial));
    TRY_ASSIGN(const UniqueFd at, root.make_directories("workspace/" + memory.path, owner));
    TRY_ASSIGN(const std::string base, make_layer("memory", owner));
    TRY(mount_overlay(disk, base, path_of(at)));
  }
  for (const auto& output : start.outputs) TRY(root.make_directories("workspace/" + output.path, owner));
  return mounts;
}

Result<void> take_away(const std::vector<UniqueFd>& mounts) {
  for (const auto& mount : mounts)
    if (::umount2(path_of(mount).c_str(), MNT_DETACH) != 0)
      return fail_errno("guest.export", "cannot take a mount away");
  return {};
}

}  // namespace firestop::guest
