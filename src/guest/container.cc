#include "guest/container.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "guest/boot.h"
#include "guest/evidence/file_watch.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV | MS_NOEXEC;

Result<void> name_host(const std::string& name) {
  if (::sethostname(name.data(), name.size()) != 0)
    return fail_errno("container.name", "cannot set the host name");
  return {};
}

Result<void> make_device(const std::string& path, unsigned major_number, unsigned minor_number) {
  if (::mknod(path.c_str(), S_IFCHR | 0666, makedev(major_number, minor_number)) != 0)
    return fail_errno("container.dev", "cannot make " + path);
  return {};
}

Result<void> make_link(const std::string& target, const std::string& path) {
  if (::symlink(target.c_str(), path.c_str()) != 0) return fail_errno("container.dev", "cannot make " + path);
  return {};
}

// /dev with what every program expects, and no device of the machine's.
Result<void> build_dev(const std::string& dev, uint64_t shared_memory) {
  TRY(mount_at("dev", dev, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k"));
  TRY(make_device(dev + "/null", 1, 3));
  TRY(make_device(dev + "/zero", 1, 5));
  TRY(make_device(dev + "/full", 1, 7));
  TRY(make_device(dev + "/random", 1, 8));
  TRY(make_device(dev + "/urandom", 1, 9));
  TRY(make_device(dev + "/tty", 5, 0));
  TRY(make_link("/proc/self/fd", dev + "/fd"));
  TRY(make_link("/proc/self/fd/0", dev + "/stdin"));
  TRY(make_link("/proc/self/fd/1", dev + "/stdout"));
  TRY(make_link("/proc/self/fd/2", dev + "/stderr"));
  TRY(make_link("pts/ptmx", dev + "/ptmx"));
  TRY(make_directory(dev + "/pts", 0755));
  TRY(make_directory(dev + "/shm", 01777));
  // Group 5 is tty in Debian; a terminal's owner is whoever opens it.
  TRY(mount_at("devpts", dev + "/pts", "devpts", MS_NOSUID | MS_NOEXEC,
               "newinstance,ptmxmode=0666,mode=0620,gid=5"));
  // Its pages are charged to the container's cgroup; the size keeps "disk full" apart from "out of memory".
  TRY(mount_at("shm", dev + "/shm", "tmpfs", kPlain,
               "mode=1777,nr_inodes=16384,size=" + std::to_string(shared_memory)));
  return {};
}

Result<void> mask(const std::string& path) {
  struct stat what;
  if (::lstat(path.c_str(), &what) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("container.mask", "cannot look at " + path);
  }
  return mount_at(S_ISDIR(what.st_mode) ? kEmpty : "/dev/null", path, nullptr, MS_BIND);
}

Result<void> freeze(const std::string& path, unsigned long flags) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  TRY(mount_at(path, path, nullptr, MS_BIND));
  return remount_read_only(path, flags);
}

Result<void> build_proc_and_sys(const std::string& root) {
  TRY(mount_at("proc", root + "/proc", "proc", kPlain));
  for (const char* path : {"acpi", "asound", "kcore", "keys", "latency_stats", "timer_list", "timer_stats",
                           "sched_debug", "scsi", "sysrq-trigger", "kmsg", "kallsyms", "modules"})
    TRY(mask(root + "/proc/" + path));
  for (const char* path : {"bus", "fs", "irq", "sys"}) TRY(freeze(root + "/proc/" + path, kPlain));
  TRY(mount_at("sysfs", root + "/sys", "sysfs", kPlain | MS_RDONLY));
  for (const char* path : {"firmware", "kernel", "module", "devices/virtual/powercap"})
    TRY(mask(root + "/sys/" + path));
  return mount_at("cgroup", root + "/sys/fs/cgroup", "cgroup2", kPlain | MS_RDONLY);
}

// The workspace read-only, but for some directories.
Result<void> freeze_workspace(const std::string& root, const std::vector<std::string>& writable) {
  const std::string workspace = root + "/workspace";
  TRY(mount_at(workspace, workspace, nullptr, MS_BIND | MS_REC));
  for (const std::string& path : writable) TRY(mount_at(root + path, root + path, nullptr, MS_BIND));
  mount_attr read_only{};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, workspace.c_str(), AT_RECURSIVE, &read_only, sizeof read_only) !=
      0)
    return fail_errno("container.workspace", "cannot make the workspace read-only");
  for (const std::string& path : writable) {
    mount_attr attributes{};
    attributes.attr_clr = MOUNT_ATTR_RDONLY;
    const std::string at = root + path;
    if (::syscall(SYS_mount_setattr, AT_FDCWD, at.c_str(), 0, &attributes, sizeof attributes) != 0)
      return fail_errno("container.workspace", "cannot make " + path + " writable");
  }
  return {};
}

// A mount over a file can be neither written, replaced nor given another name.
Result<void> pin(const std::string& root, const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    TRY(mount_at(root + path, root + path, nullptr, MS_BIND));
    mount_attr read_only{};
    read_only.attr_set = MOUNT_ATTR_RDONLY;
    if (::syscall(SYS_mount_setattr, AT_FDCWD, (root + path).c_str(), 0, &read_only, sizeof read_only) != 0)
      return fail_errno("container.workspace", "cannot make " + path + " read-only");
  }
  return {};
}

// pivot_root(2) with one and the same directory stacks the old root on the new one, and that is taken off.
Result<void> enter_root(const std::string& root) {
  if (::chdir(root.c_str()) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0 ||
      ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0)
    return fail_errno("container.root", "cannot enter the container's root");
  return {};
}

Result<void> limit(int resource, uint64_t value, const char* name) {
  const rlimit both{value, value};
  if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &both) != 0)
    return fail_errno("container.limit", std::string("cannot set the limit ") + name);
  return {};
}

Result<void> drop_capabilities() {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
    if (::prctl(PR_CAPBSET_DROP, capability) != 0)
      return fail_errno("container.capabilities", "cannot drop capability " + std::to_string(capability));
  constexpr unsigned long kBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, kBits) != 0 ||
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    return fail_errno("container.capabilities", "cannot lock the capabilities away");
  return {};
}

Result<void> become(const ContainerSettings& settings) {
  if (settings.uid == 0 || settings.gid == 0)
    return fail("container.account", "the account of a container cannot be root");
  std::vector<gid_t> groups(settings.groups.begin(), settings.groups.end());
  if (::setgroups(groups.size(), groups.data()) != 0 ||
      ::setresgid(settings.gid, settings.gid, settings.gid) != 0 ||
      ::setresuid(settings.uid, settings.uid, settings.uid) != 0)
    return fail_errno("container.account", "cannot become the account");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0)
    return fail_errno("container.capabilities", "cannot empty the capability sets");
  return {};
}

Result<void> filter_system_calls(const std::string& bytes) {
  if (bytes.empty() || bytes.size() % sizeof(sock_filter) != 0 ||
      bytes.size() / sizeof(sock_filter) > BPF_MAXINSNS)
    return fail("container.seccomp", "the system call filter is malformed");
  std::vector<sock_filter> program(bytes.size() / sizeof(sock_filter));
  ::memcpy(program.data(), bytes.data(), bytes.size());
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0)
    return fail_errno("container.seccomp", "cannot install the system call filter");
  return {};
}

}  // namespace

Result<void> build_container(const ContainerSettings& settings) {
  // The process was born into its cgroup; only now can that be the root that it sees.
  if (::unshare(CLONE_NEWCGROUP) != 0)
    return fail_errno("container.cgroup", "cannot leave the cgroup namespace");
  if (::setns(settings.network, CLONE_NEWNET) != 0)
    return fail_errno("container.network", "cannot enter the network namespace");
  ::umask(0);  // devices and /dev/shm are for all; drop_privileges() sets the account's
  TRY(mount_at("none", "/", nullptr, MS_REC | MS_PRIVATE));
  TRY(name_host(settings.hostname));
  if (settings.writable) TRY(freeze_workspace(settings.root, *settings.writable));
  TRY(pin(settings.root, settings.pins));
  TRY(build_dev(settings.root + "/dev", settings.shared_memory));
  if (settings.watch >= 0) TRY(watch_place(settings.watch, (settings.root + "/dev/shm").c_str()));
  TRY(build_proc_and_sys(settings.root));
  return enter_root(settings.root);
}

Result<void> drop_privileges(const ContainerSettings& settings) {
  TRY(limit(RLIMIT_NOFILE, settings.open_files, "nofile"));
  TRY(limit(RLIMIT_CORE, 0, "core"));
  // The reaper is never what the kernel kills for want of memory; its children reset this for themselves.
  TRY(write_kernel_file("/proc/self/oom_score_adj", "-1000"));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("container.privileges", "cannot renounce new privileges");
  TRY(drop_capabilities());
  TRY(become(settings));
  ::umask(022);
  // Nobody in the container may look into the reaper: it is a copy of PID 1.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    return fail_errno("container.privileges", "cannot make the reaper opaque");
  return filter_system_calls(settings.seccomp);
}

Result<void> enter_root_for_test(const ContainerSettings& settings) {
  if (::setns(settings.network, CLONE_NEWNET) != 0)
    return fail_errno("container.network", "cannot enter the network namespace");
  for (const char* path : {"/proc", "/sys", "/dev"})
    TRY(mount_at(path, settings.root + path, nullptr, MS_BIND | MS_REC));
  if (::chroot(settings.root.c_str()) != 0 || ::chdir("/") != 0)
    return fail_errno("container.root", "cannot enter the container's root");
  return {};
}

}  // namespace firestop::guest
