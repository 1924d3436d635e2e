// A sandbox's own disk: ext4 without what a file system needs to outlive a crash or a year (a journal,
// checksums, backups, room to grow), since the disk goes with the run. That leaves little to read at mount
// time, which counts without KVM, and little to copy: 112 KiB of data for 4 GiB, 488 KiB for 1 TiB. Unused
// groups are marked so (uninit_bg); mount with noinit_itable, or the kernel zeroes the inode tables of all
// groups in the background, which are zeros already.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/process.h"
#include "base/units.h"
#include "workspace/cache.h"
#include "workspace/workspace.h"

namespace firestop::workspace {
namespace {

constexpr uint64_t kMinDisk = 64ull << 20;
constexpr uint64_t kMaxDisk = 1ull << 40;
constexpr uint64_t kBytesPerInode = 16384;
constexpr uint64_t kMinInodes = 16384, kMaxInodes = 8ull << 20;

constexpr char kFeatures[] =
    "none,filetype,extent,flex_bg,sparse_super2,large_file,huge_file,dir_index,dir_nlink,"
    "ext_attr,extra_isize,uninit_bg";

Result<void> make_template(const std::string& path, uint64_t bytes) {
  {
    TRY_ASSIGN(const UniqueFd file, open_file(path, O_RDWR | O_CREAT | O_EXCL));
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
      return fail_errno("disk.make", "cannot size " + path);
  }
  Command command;
  command.argv = {"mke2fs",
                  "-q",
                  "-F",
                  "-t",
                  "ext4",
                  "-b",
                  "4096",
                  "-I",
                  "256",
                  "-m",
                  "0",
                  "-N",
                  std::to_string(std::clamp(bytes / kBytesPerInode, kMinInodes, kMaxInodes)),
                  "-O",
                  kFeatures,
                  "-E",
                  "lazy_itable_init=1,num_backup_sb=0,root_owner=0:0",
                  "-G",
                  "256",
                  path};
  command.env =
      std::vector<std::string>{"LC_ALL=C", "MKE2FS_CONFIG=/dev/null", "PATH=/usr/sbin:/sbin:/usr/bin:/bin"};
  auto made = run_checked(command);
  if (!made) return fail("disk.make", made.error().message, "mke2fs comes with the package e2fsprogs");
  return {};
}

}  // namespace

Result<void> make_scratch_disk(const std::string& path, uint64_t bytes) {
  bytes = bytes / (1u << 20) * (1u << 20);
  if (bytes < kMinDisk || bytes > kMaxDisk)
    return fail("disk.size", "a disk of " + format_bytes(bytes) + " cannot be made",
                "limits.disk: from " + format_bytes(kMinDisk) + " to " + format_bytes(kMaxDisk));
  TRY_ASSIGN(const std::string master,
             cached_file("disks/ext4-2-" + std::to_string(bytes) + ".img",
                         [&](const std::string& temporary) { return make_template(temporary, bytes); }));
  return copy_sparse(master, path);
}

}  // namespace firestop::workspace
