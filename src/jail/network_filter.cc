#include "jail/network_filter.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/filter_rules.h"

namespace firestop::jail {
namespace {

using Names = FilterRules::Names;

// What the resolver and OpenSSL read; Landlock bounds it to a few.
constexpr const char* kFiles[] = {"access",     "close",      "close_range", "dup",   "dup2",    "dup3",
                                  "faccessat",  "faccessat2", "fcntl",       "fstat", "lseek",   "lstat",
                                  "newfstatat", "open",       "openat",      "pipe2", "pread64", "read",
                                  "readlink",   "readlinkat", "readv",       "stat",  "statx",   "write",
                                  "writev",     "getcwd",     "fstatfs",     "statfs"};
constexpr const char* kMemory[] = {"brk",      "madvise", "mlock",   "mlock2", "mmap",
                                   "mprotect", "mremap",  "munlock", "munmap", "membarrier"};
constexpr const char* kThreads[] = {
    "arch_prctl",        "exit",        "exit_group",      "futex",           "get_robust_list", "getcpu",
    "getegid",           "geteuid",     "getgid",          "getpid",          "getppid",         "getrandom",
    "getrusage",         "gettid",      "getuid",          "getresuid",       "getresgid",       "rseq",
    "sched_getaffinity", "sched_yield", "set_robust_list", "set_tid_address", "sysinfo",         "uname"};
constexpr const char* kSignalsAndTime[] = {
    "clock_getres",   "clock_gettime",  "clock_nanosleep", "gettimeofday", "nanosleep", "restart_syscall",
    "rt_sigaction",   "rt_sigprocmask", "rt_sigreturn",    "sigaltstack",  "time",      "timerfd_create",
    "timerfd_settime"};
constexpr const char* kWaiting[] = {"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
                                    "eventfd2",      "poll",      "ppoll",       "pselect6",     "select"};
constexpr const char* kTalking[] = {
    "accept",   "accept4",  "bind",    "connect",  "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg",     "sendto",      "setsockopt", "shutdown"};
constexpr const char* kAbsent[] = {"clone3", "io_uring_setup", "memfd_create", "memfd_secret"};
// No AF_UNIX: the user's own services (D-Bus, agents) listen there. Without nscd, the C library asks DNS
// itself.
constexpr int kFamilies[] = {AF_INET, AF_INET6, AF_NETLINK};

}  // namespace

Result<std::string> network_filter() {
  TRY_ASSIGN(FilterRules rules, FilterRules::start());
  for (const Names group : {Names(kFiles), Names(kMemory), Names(kThreads), Names(kSignalsAndTime),
                            Names(kWaiting), Names(kTalking)})
    TRY(rules.allow(group));
  TRY(rules.absent(kAbsent));
  TRY(rules.allow_threads());
  for (const int family : kFamilies)
    TRY(rules.allow("socket", {SCMP_A0_64(SCMP_CMP_EQ, static_cast<uint64_t>(family))}));
  TRY(rules.allow("socketpair", {SCMP_A0_64(SCMP_CMP_EQ, AF_UNIX)}));
  // abort() and pthread's own; nobody else's threads.
  TRY(rules.allow("tgkill", {SCMP_A0_64(SCMP_CMP_EQ, static_cast<uint64_t>(::getpid()))}));
  TRY(rules.allow_common_ioctls());
  // Naming a thread; asking, not setting.
  TRY(rules.allow("prctl", {SCMP_A0_64(SCMP_CMP_EQ, PR_SET_NAME)}));
  TRY(rules.allow("prctl", {SCMP_A0_64(SCMP_CMP_EQ, PR_GET_DUMPABLE)}));
  TRY(rules.allow("prlimit64", {SCMP_A2_64(SCMP_CMP_EQ, 0)}));
  TRY(rules.allow("getrlimit"));
  return rules.finish();
}

Result<void> install_filter(const std::string& filter) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("jail.seccomp", "cannot renounce new privileges");
  const sock_fprog program{static_cast<unsigned short>(filter.size() / sizeof(sock_filter)),
                           // The kernel takes a pointer to what it only reads.
                           reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()))};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    return fail_errno("jail.seccomp", "cannot install the system call filter");
  return {};
}

Result<void> drop_capabilities() {
  for (unsigned long capability = 0; capability < 64; ++capability)
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL && errno != EPERM)
      return fail_errno("jail.capabilities", "cannot drop a capability");
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    return fail_errno("jail.capabilities", "cannot drop ambient capabilities");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0)
    return fail_errno("jail.capabilities", "cannot empty the capability sets");
  return {};
}

}  // namespace firestop::jail
