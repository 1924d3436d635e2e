#include "jail/vm_filter.h"

#include <sys/ioctl.h>

#include "jail/filter_rules.h"

namespace firestop::jail {
namespace {

using Names = FilterRules::Names;

// Disks, the monitor, the channel; libraries and firmware while it starts.
constexpr const char* kFiles[] = {"access",  "close",      "close_range", "dup",        "dup2",
                                  "dup3",    "faccessat",  "faccessat2",  "fadvise64",  "fallocate",
                                  "fcntl",   "fdatasync",  "flock",       "fstat",      "fstatfs",
                                  "fsync",   "ftruncate",  "getcwd",      "getdents64", "lseek",
                                  "lstat",   "newfstatat", "open",        "openat",     "pipe",
                                  "pipe2",   "pread64",    "preadv",      "preadv2",    "pwrite64",
                                  "pwritev", "pwritev2",   "read",        "readlink",   "readlinkat",
                                  "readv",   "stat",       "statfs",      "statx",      "sync_file_range",
                                  "write",   "writev"};
constexpr const char* kMemory[] = {"brk",    "madvise",       "membarrier", "mincore",
                                   "mmap",   "mprotect",      "mremap",     "msync",
                                   "munmap", "set_mempolicy", "mbind",      "get_mempolicy"};
constexpr const char* kThreads[] = {"arch_prctl",
                                    "exit",
                                    "exit_group",
                                    "futex",
                                    "get_robust_list",
                                    "getcpu",
                                    "getegid",
                                    "geteuid",
                                    "getgid",
                                    "getpgrp",
                                    "getpid",
                                    "getppid",
                                    "getrandom",
                                    "getresgid",
                                    "getresuid",
                                    "getrusage",
                                    "gettid",
                                    "getuid",
                                    "prctl",
                                    "rseq",
                                    "sched_getaffinity",
                                    "sched_getparam",
                                    "sched_getscheduler",
                                    "sched_yield",
                                    "seccomp",
                                    "set_robust_list",
                                    "set_tid_address",
                                    "sysinfo",
                                    "uname"};
constexpr const char* kSignalsAndTime[] = {
    "clock_getres",   "clock_gettime",   "clock_nanosleep",  "gettimeofday",
    "nanosleep",      "restart_syscall", "rt_sigaction",     "rt_sigpending",
    "rt_sigprocmask", "rt_sigreturn",    "rt_sigsuspend",    "rt_sigtimedwait",
    "sigaltstack",    "signalfd4",       "tgkill",           "time",
    "timer_create",   "timer_delete",    "timer_getoverrun", "timer_gettime",
    "timer_settime",  "timerfd_create",  "timerfd_gettime",  "timerfd_settime"};
constexpr const char* kWaiting[] = {"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
                                    "eventfd2",      "poll",      "ppoll",       "pselect6",     "select"};
// On sockets that exist.
constexpr const char* kTalking[] = {"getpeername", "getsockname", "getsockopt", "recvfrom", "recvmsg",
                                    "sendmsg",     "sendto",      "setsockopt", "shutdown"};
// Libraries ask for these and go on without.
constexpr const char* kAbsent[] = {"clone3", "io_uring_setup", "memfd_create", "memfd_secret"};

}  // namespace

Result<std::string> vm_filter() {
  TRY_ASSIGN(FilterRules rules, FilterRules::start());
  for (const Names group : {Names(kFiles), Names(kMemory), Names(kThreads), Names(kSignalsAndTime),
                            Names(kWaiting), Names(kTalking)})
    TRY(rules.allow(group));
  TRY(rules.absent(kAbsent));
  TRY(rules.allow("execve"));
  TRY(rules.allow_threads());
  TRY(rules.allow_common_ioctls());
  TRY(rules.allow("ioctl", {SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xff00, 0xae00)}));  // KVM
  // A tap's are 'T' as terminals' are, with the size of what they carry.
  for (const uint64_t direction : {_IOC_WRITE, _IOC_READ, _IOC_WRITE | _IOC_READ})
    TRY(rules.allow("ioctl", {SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xc000ff00,
                                         direction << _IOC_DIRSHIFT | 'T' << _IOC_TYPESHIFT)}));
  TRY(rules.allow("prlimit64", {SCMP_A2_64(SCMP_CMP_EQ, 0)}));
  TRY(rules.allow("getrlimit"));
  return rules.finish();
}

}  // namespace firestop::jail
