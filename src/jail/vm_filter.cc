#include "jail/vm_filter.h"

#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>
#include <span>

#include "base/fd.h"
#include "base/file.h"

namespace firestop::jail {
namespace {

using Names = std::span<const char* const>;

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

constexpr uint64_t kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

struct Release {
  void operator()(void* context) const { ::seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

Unexpected refused(const std::string& what, int code) {
  return Unexpected(Error{"jail.seccomp", "libseccomp refuses " + what, "", -code});
}

Result<void> add(const Context& context, uint32_t action, const char* name,
                 std::initializer_list<scmp_arg_cmp> conditions = {}) {
  const int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name);
  // A name newer than the library: the call then has the answer of all that are not listed.
  if (number == __NR_SCMP_ERROR) return {};
  const int code = ::seccomp_rule_add_array(context.get(), action, number,
                                            static_cast<unsigned>(conditions.size()), conditions.begin());
  if (code != 0) return refused(std::string("a rule for ") + name, code);
  return {};
}

}  // namespace

Result<std::string> vm_filter() {
  const Context context(::seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (!context) return refused("a new filter", -ENOMEM);
  ::seccomp_arch_remove(context.get(), SCMP_ARCH_NATIVE);
  if (const int code = ::seccomp_arch_add(context.get(), SCMP_ARCH_X86_64); code != 0)
    return refused("x86-64", code);
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree: some eight steps a call

  for (const Names group : {Names(kFiles), Names(kMemory), Names(kThreads), Names(kSignalsAndTime),
                            Names(kWaiting), Names(kTalking)})
    for (const char* name : group) TRY(add(context, SCMP_ACT_ALLOW, name));
  for (const char* name : kAbsent) TRY(add(context, SCMP_ACT_ERRNO(ENOSYS), name));
  TRY(add(context, SCMP_ACT_ALLOW, "execve"));
  // A thread shares memory; what does not is a process.
  TRY(add(context, SCMP_ACT_ALLOW, "clone",
          {SCMP_A0_64(SCMP_CMP_MASKED_EQ, kNamespaces | CLONE_VM | CLONE_THREAD, CLONE_VM | CLONE_THREAD)}));
  // The kernel looks at the lower half of the number only, so the conditions do.
  for (const uint64_t number : std::initializer_list<uint64_t>{TCGETS, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX})
    TRY(add(context, SCMP_ACT_ALLOW, "ioctl", {SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xffffffff, number)}));
  TRY(add(context, SCMP_ACT_ALLOW, "ioctl", {SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xff00, 0xae00)}));  // KVM
  // A tap's are 'T' as terminals' are, with the size of what they carry.
  for (const uint64_t direction : {_IOC_WRITE, _IOC_READ, _IOC_WRITE | _IOC_READ})
    TRY(add(
        context, SCMP_ACT_ALLOW, "ioctl",
        {SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xc000ff00, direction << _IOC_DIRSHIFT | 'T' << _IOC_TYPESHIFT)}));
  TRY(add(context, SCMP_ACT_ALLOW, "prlimit64", {SCMP_A2_64(SCMP_CMP_EQ, 0)}));
  TRY(add(context, SCMP_ACT_ALLOW, "getrlimit"));

  const UniqueFd memory(::memfd_create("filter", MFD_CLOEXEC));
  if (!memory.valid()) return fail_errno("jail.seccomp", "cannot make a memory file");
  if (const int code = ::seccomp_export_bpf(context.get(), memory.get()); code != 0)
    return refused("to write the filter", code);
  ::lseek(memory.get(), 0, SEEK_SET);
  return read_all(memory.get(), 64u << 10);
}

}  // namespace firestop::jail
