#include "guest/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"
#include "base/file.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV | MS_NOEXEC;

// The kernel opens /dev/console for init only if the initramfs has that node. Descriptors 0 to 2 must be
// taken, or the next open() becomes somebody's stdout.
Result<void> take_standard_descriptors() {
  UniqueFd null(::open("/dev/null", O_RDWR));
  if (!null.valid()) return fail_errno("guest.boot", "cannot open /dev/null");
  UniqueFd console(::open("/dev/console", O_WRONLY | O_NOCTTY));
  const int out = console.valid() ? console.get() : null.get();
  if (null.get() > 2) ::dup2(null.get(), 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  if (null.get() <= 2) null.release();
  if (console.get() <= 2) console.release();
  return {};
}

Result<void> load_module(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("guest.module", "cannot open " + path);
  if (::syscall(SYS_finit_module, fd.get(), "", 0) != 0 && errno != EEXIST)
    return fail_errno("guest.module", "cannot load " + path);
  ::unlink(path.c_str());  // it lies in memory, which the agent can use better
  return {};
}

// /modules.order: one file a line, in load order; absolute, or below /modules.
Result<void> load_modules() {
  TRY_ASSIGN(const std::string order, read_file("/modules.order", 64u << 10));
  std::string_view rest = order;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty()) continue;
    // Disks get their driver one by one (devices.h): keep it from taking them all.
    const bool disks = line.ends_with("virtio_blk.ko");
    if (disks) TRY(write_kernel_file("/sys/bus/virtio/drivers_autoprobe", "0"));
    TRY(load_module((line[0] == '/' ? "" : "/modules/") + std::string(line)));
    if (disks) TRY(write_kernel_file("/sys/bus/virtio/drivers_autoprobe", "1"));
  }
  return {};
}

// Containers leave this root with pivot_root(2), which the initramfs itself does not allow: so the root is a
// small tmpfs on top of it.
Result<void> leave_initramfs() {
  TRY(mount_at("init", "/newroot", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m"));
  for (const char* directory : {"proc", "sys", "dev", "mnt"}) {
    const std::string target = std::string("/newroot/") + directory;
    TRY(make_directory(target, 0755));
    if (std::string_view(directory) != "mnt")
      TRY(mount_at(std::string("/") + directory, target, nullptr, MS_MOVE));
  }
  if (::chdir("/newroot") != 0) return fail_errno("guest.boot", "cannot enter the new root");
  TRY(mount_at(".", "/", nullptr, MS_MOVE));
  if (::chroot(".") != 0 || ::chdir("/") != 0) return fail_errno("guest.boot", "cannot change root");
  for (const char* path : {kImage, kScratch, kReadOnly, kRoot, kEmpty}) TRY(make_directory(path, 0755));
  return {};
}

// What a distribution's init would set with sysctl(8); the kernel's own defaults are laxer.
Result<void> harden() {
  constexpr struct {
    const char* name;
    const char* value;
  } kSettings[] = {
      {"fs/protected_symlinks", "1"},
      {"fs/protected_hardlinks", "1"},
      {"fs/protected_fifos", "1"},
      {"fs/protected_regular", "2"},
      {"fs/suid_dumpable", "0"},
      {"kernel/kptr_restrict", "2"},
      {"kernel/dmesg_restrict", "1"},
      {"kernel/unprivileged_bpf_disabled", "1"},
      {"user/max_user_namespaces", "0"},
      {"kernel/perf_event_paranoid", "3"},
      {"vm/unprivileged_userfaultfd", "0"},
  };
  for (const auto& setting : kSettings) {
    const std::string path = std::string("/proc/sys/") + setting.name;
    if (::access(path.c_str(), F_OK) == 0) TRY(write_kernel_file(path, setting.value));
  }
  return {};
}

}  // namespace

Result<void> boot() {
  ::umask(0);
  for (const char* path : {"/proc", "/sys", "/dev", "/newroot"}) TRY(make_directory(path, 0755));
  TRY(mount_at("proc", "/proc", "proc", kPlain));
  TRY(mount_at("sysfs", "/sys", "sysfs", kPlain));
  TRY(mount_at("devtmpfs", "/dev", "devtmpfs", MS_NOSUID | MS_NOEXEC));
  TRY(take_standard_descriptors());
  TRY(mount_at("cgroup2", kCgroups, "cgroup2", kPlain, "nsdelegate"));
  TRY(load_modules());
  TRY(leave_initramfs());
  TRY(harden());
  ::umask(022);
  return {};
}

}  // namespace firestop::guest
