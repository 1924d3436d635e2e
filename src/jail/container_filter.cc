#include "jail/container_filter.h"

#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <span>

#include "base/fd.h"
#include "base/file.h"

namespace firestop::jail {
namespace {

using Names = std::span<const char* const>;

constexpr const char* kFiles[] = {"access",
                                  "chdir",
                                  "chmod",
                                  "chown",
                                  "close",
                                  "close_range",
                                  "copy_file_range",
                                  "creat",
                                  "dup",
                                  "dup2",
                                  "dup3",
                                  "faccessat",
                                  "faccessat2",
                                  "fadvise64",
                                  "fallocate",
                                  "fchdir",
                                  "fchmod",
                                  "fchmodat",
                                  "fchown",
                                  "fchownat",
                                  "fcntl",
                                  "fdatasync",
                                  "fgetxattr",
                                  "flistxattr",
                                  "flock",
                                  "fremovexattr",
                                  "fsetxattr",
                                  "fstat",
                                  "fstatfs",
                                  "fsync",
                                  "ftruncate",
                                  "futimesat",
                                  "getcwd",
                                  "getdents",
                                  "getdents64",
                                  "getxattr",
                                  "inotify_add_watch",
                                  "inotify_init",
                                  "inotify_init1",
                                  "inotify_rm_watch",
                                  "ioctl",
                                  "lchown",
                                  "lgetxattr",
                                  "link",
                                  "linkat",
                                  "listxattr",
                                  "llistxattr",
                                  "lremovexattr",
                                  "lseek",
                                  "lsetxattr",
                                  "lstat",
                                  "mkdir",
                                  "mkdirat",
                                  "mknod",
                                  "mknodat",
                                  "newfstatat",
                                  "open",
                                  "openat",
                                  "openat2",
                                  "pread64",
                                  "preadv",
                                  "preadv2",
                                  "pwrite64",
                                  "pwritev",
                                  "pwritev2",
                                  "read",
                                  "readahead",
                                  "readlink",
                                  "readlinkat",
                                  "readv",
                                  "removexattr",
                                  "rename",
                                  "renameat",
                                  "renameat2",
                                  "rmdir",
                                  "sendfile",
                                  "setxattr",
                                  "splice",
                                  "stat",
                                  "statfs",
                                  "statx",
                                  "symlink",
                                  "symlinkat",
                                  "sync",
                                  "sync_file_range",
                                  "syncfs",
                                  "tee",
                                  "truncate",
                                  "umask",
                                  "unlink",
                                  "unlinkat",
                                  "utime",
                                  "utimensat",
                                  "utimes",
                                  "vmsplice",
                                  "write",
                                  "writev"};

constexpr const char* kMemory[] = {"brk",
                                   "get_mempolicy",
                                   "madvise",
                                   "mbind",
                                   "membarrier",
                                   "memfd_create",
                                   "mincore",
                                   "mlock",
                                   "mlock2",
                                   "mlockall",
                                   "mmap",
                                   "mprotect",
                                   "mremap",
                                   "msync",
                                   "munlock",
                                   "munlockall",
                                   "munmap",
                                   "pkey_alloc",
                                   "pkey_free",
                                   "pkey_mprotect",
                                   "process_madvise",
                                   "remap_file_pages",
                                   "set_mempolicy"};

constexpr const char* kProcesses[] = {"arch_prctl",
                                      "capget",
                                      "capset",
                                      "execve",
                                      "execveat",
                                      "exit",
                                      "exit_group",
                                      "fork",
                                      "get_robust_list",
                                      "get_thread_area",
                                      "getcpu",
                                      "getegid",
                                      "geteuid",
                                      "getgid",
                                      "getgroups",
                                      "getpgid",
                                      "getpgrp",
                                      "getpid",
                                      "getppid",
                                      "getpriority",
                                      "getresgid",
                                      "getresuid",
                                      "getrlimit",
                                      "getrusage",
                                      "getsid",
                                      "gettid",
                                      "getuid",
                                      "ioprio_get",
                                      "ioprio_set",
                                      "kcmp",
                                      "landlock_add_rule",
                                      "landlock_create_ruleset",
                                      "landlock_restrict_self",
                                      "pidfd_getfd",
                                      "pidfd_open",
                                      "pidfd_send_signal",
                                      "prctl",
                                      "prlimit64",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "ptrace",
                                      "rseq",
                                      "sched_get_priority_max",
                                      "sched_get_priority_min",
                                      "sched_getaffinity",
                                      "sched_getattr",
                                      "sched_getparam",
                                      "sched_getscheduler",
                                      "sched_rr_get_interval",
                                      "sched_setaffinity",
                                      "sched_setattr",
                                      "sched_setparam",
                                      "sched_setscheduler",
                                      "sched_yield",
                                      "seccomp",
                                      "set_robust_list",
                                      "set_thread_area",
                                      "set_tid_address",
                                      "setfsgid",
                                      "setfsuid",
                                      "setgid",
                                      "setgroups",
                                      "setpgid",
                                      "setpriority",
                                      "setregid",
                                      "setresgid",
                                      "setresuid",
                                      "setreuid",
                                      "setrlimit",
                                      "setsid",
                                      "setuid",
                                      "sysinfo",
                                      "times",
                                      "uname",
                                      "vfork",
                                      "wait4",
                                      "waitid"};

constexpr const char* kSignalsAndTime[] = {"alarm",
                                           "clock_getres",
                                           "clock_gettime",
                                           "clock_nanosleep",
                                           "getitimer",
                                           "gettimeofday",
                                           "kill",
                                           "nanosleep",
                                           "pause",
                                           "restart_syscall",
                                           "rt_sigaction",
                                           "rt_sigpending",
                                           "rt_sigprocmask",
                                           "rt_sigqueueinfo",
                                           "rt_sigreturn",
                                           "rt_sigsuspend",
                                           "rt_sigtimedwait",
                                           "rt_tgsigqueueinfo",
                                           "setitimer",
                                           "sigaltstack",
                                           "signalfd",
                                           "signalfd4",
                                           "tgkill",
                                           "time",
                                           "timer_create",
                                           "timer_delete",
                                           "timer_getoverrun",
                                           "timer_gettime",
                                           "timer_settime",
                                           "timerfd_create",
                                           "timerfd_gettime",
                                           "timerfd_settime",
                                           "tkill"};

constexpr const char* kWaiting[] = {"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait",
                                    "epoll_pwait2", "epoll_wait",    "eventfd",   "eventfd2",
                                    "futex",        "futex_waitv",   "io_cancel", "io_destroy",
                                    "io_getevents", "io_pgetevents", "io_setup",  "io_submit",
                                    "poll",         "ppoll",         "pselect6",  "select"};

constexpr const char* kTalking[] = {
    "accept",          "accept4",      "bind",      "connect",       "getpeername", "getrandom",
    "getsockname",     "getsockopt",   "listen",    "mq_getsetattr", "mq_notify",   "mq_open",
    "mq_timedreceive", "mq_timedsend", "mq_unlink", "msgctl",        "msgget",      "msgrcv",
    "msgsnd",          "pipe",         "pipe2",     "recvfrom",      "recvmmsg",    "recvmsg",
    "semctl",          "semget",       "semop",     "semtimedop",    "sendmmsg",    "sendmsg",
    "sendto",          "setsockopt",   "shmat",     "shmctl",        "shmdt",       "shmget",
    "shutdown",        "socketpair"};

// Known and refused. Without a capability the kernel refuses most of them anyway; here they never get to the
// code behind them.
constexpr const char* kRefused[] = {"acct",
                                    "add_key",
                                    "adjtimex",
                                    "bpf",
                                    "chroot",
                                    "clock_adjtime",
                                    "clock_settime",
                                    "create_module",
                                    "delete_module",
                                    "fanotify_init",
                                    "fanotify_mark",
                                    "finit_module",
                                    "fsconfig",
                                    "fsmount",
                                    "fsopen",
                                    "fspick",
                                    "get_kernel_syms",
                                    "init_module",
                                    "io_uring_enter",
                                    "io_uring_register",
                                    "io_uring_setup",
                                    "ioperm",
                                    "iopl",
                                    "kexec_file_load",
                                    "kexec_load",
                                    "keyctl",
                                    "lookup_dcookie",
                                    "migrate_pages",
                                    "modify_ldt",
                                    "mount",
                                    "mount_setattr",
                                    "move_mount",
                                    "move_pages",
                                    "name_to_handle_at",
                                    "nfsservctl",
                                    "open_by_handle_at",
                                    "open_tree",
                                    "perf_event_open",
                                    "pivot_root",
                                    "query_module",
                                    "quotactl",
                                    "quotactl_fd",
                                    "reboot",
                                    "request_key",
                                    "set_mempolicy_home_node",
                                    "setdomainname",
                                    "sethostname",
                                    "setns",
                                    "settimeofday",
                                    "swapoff",
                                    "swapon",
                                    "_sysctl",
                                    "syslog",
                                    "umount2",
                                    "unshare",
                                    "userfaultfd",
                                    "uselib",
                                    "ustat",
                                    "vhangup"};

constexpr uint64_t kNamespaceFlags[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                        CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

// PER_LINUX, PER_LINUX32, UNAME26 with both, and the question which one it is.
constexpr uint64_t kPersonalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};

struct Release {
  void operator()(void* context) const { ::seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

Unexpected refused(const std::string& what, int code) {
  Error error{"jail.seccomp", "libseccomp refuses " + what, "", -code};
  return Unexpected(std::move(error));
}

Result<void> add(const Context& context, uint32_t action, const char* name,
                 std::initializer_list<scmp_arg_cmp> conditions = {}) {
  const int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name);
  if (number == __NR_SCMP_ERROR) return refused(std::string("the name ") + name, -EINVAL);
  const int code = ::seccomp_rule_add_array(context.get(), action, number,
                                            static_cast<unsigned>(conditions.size()), conditions.begin());
  if (code != 0) return refused(std::string("a rule for ") + name, code);
  return {};
}

Result<void> add_clone(const Context& context) {
  uint64_t all = 0;
  for (const uint64_t flag : kNamespaceFlags) {
    all |= flag;
    TRY(add(context, SCMP_ACT_ERRNO(EPERM), "clone", {SCMP_A0_64(SCMP_CMP_MASKED_EQ, flag, flag)}));
  }
  return add(context, SCMP_ACT_ALLOW, "clone", {SCMP_A0_64(SCMP_CMP_MASKED_EQ, all, 0)});
}

Result<void> add_socket(const Context& context) {
  for (uint64_t family = 0; family < AF_NETLINK; ++family) {
    const bool good = family == AF_UNIX || family == AF_INET || family == AF_INET6;
    TRY(add(context, good ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket",
            {SCMP_A0_64(SCMP_CMP_EQ, family)}));
  }
  // NETLINK_ROUTE: how programs list interfaces and addresses.
  TRY(add(context, SCMP_ACT_ALLOW, "socket",
          {SCMP_A0_64(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2_64(SCMP_CMP_EQ, 0)}));
  TRY(add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket",
          {SCMP_A0_64(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2_64(SCMP_CMP_GT, 0)}));
  return add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", {SCMP_A0_64(SCMP_CMP_GT, AF_NETLINK)});
}

}  // namespace

Result<std::string> container_filter() {
  const Context context(::seccomp_init(SCMP_ACT_ERRNO(ENOSYS)));
  if (!context) return refused("a new filter", -ENOMEM);
  // The filter is for the guest, whatever this process is.
  ::seccomp_arch_remove(context.get(), SCMP_ARCH_NATIVE);
  if (const int code = ::seccomp_arch_add(context.get(), SCMP_ARCH_X86_64); code != 0)
    return refused("x86-64", code);
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree: some eight steps a call

  for (const Names group : {Names(kFiles), Names(kMemory), Names(kProcesses), Names(kSignalsAndTime),
                            Names(kWaiting), Names(kTalking)})
    for (const char* name : group) TRY(add(context, SCMP_ACT_ALLOW, name));
  for (const char* name : kRefused) TRY(add(context, SCMP_ACT_ERRNO(EPERM), name));
  for (const uint64_t personality : kPersonalities)
    TRY(add(context, SCMP_ACT_ALLOW, "personality", {SCMP_A0_64(SCMP_CMP_EQ, personality)}));
  TRY(add_clone(context));
  TRY(add_socket(context));

  const UniqueFd memory(::memfd_create("filter", MFD_CLOEXEC));
  if (!memory.valid()) return fail_errno("jail.seccomp", "cannot make a memory file");
  if (const int code = ::seccomp_export_bpf(context.get(), memory.get()); code != 0)
    return refused("to write the filter", code);
  ::lseek(memory.get(), 0, SEEK_SET);
  return read_all(memory.get(), 64u << 10);
}

}  // namespace firestop::jail
