#include "jail/network_filter.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>
#include <span>

#include "base/fd.h"
#include "base/file.h"

namespace firestop::jail {
namespace {

using Names = std::span<const char* const>;

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
    "clock_getres",    "clock_gettime", "clock_nanosleep", "gettimeofday",   "nanosleep",
    "restart_syscall", "rt_sigaction",  "rt_sigprocmask",  "rt_sigreturn",   "sigaltstack",
    "tgkill",          "time",          "timerfd_create",  "timerfd_settime"};
constexpr const char* kWaiting[] = {"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
                                    "eventfd2",      "poll",      "ppoll",       "pselect6",     "select"};
constexpr const char* kTalking[] = {
    "accept",   "accept4",  "bind",    "connect",  "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg",     "sendto",      "setsockopt", "shutdown"};
constexpr const char* kAbsent[] = {"clone3", "io_uring_setup", "memfd_create", "memfd_secret"};
constexpr int kFamilies[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};

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
  if (number == __NR_SCMP_ERROR) return {};
  const int code = ::seccomp_rule_add_array(context.get(), action, number,
                                            static_cast<unsigned>(conditions.size()), conditions.begin());
  if (code != 0) return refused(std::string("a rule for ") + name, code);
  return {};
}

Result<void> add_rules(const Context& context) {
  for (const Names group : {Names(kFiles), Names(kMemory), Names(kThreads), Names(kSignalsAndTime),
                            Names(kWaiting), Names(kTalking)})
    for (const char* name : group) TRY(add(context, SCMP_ACT_ALLOW, name));
  for (const char* name : kAbsent) TRY(add(context, SCMP_ACT_ERRNO(ENOSYS), name));
  // A thread shares memory; what does not is a process.
  TRY(add(context, SCMP_ACT_ALLOW, "clone",
          {SCMP_A0_64(SCMP_CMP_MASKED_EQ, kNamespaces | CLONE_VM | CLONE_THREAD, CLONE_VM | CLONE_THREAD)}));
  for (const int family : kFamilies)
    TRY(add(context, SCMP_ACT_ALLOW, "socket", {SCMP_A0_64(SCMP_CMP_EQ, static_cast<uint64_t>(family))}));
  TRY(add(context, SCMP_ACT_ALLOW, "socketpair", {SCMP_A0_64(SCMP_CMP_EQ, AF_UNIX)}));
  for (const uint64_t number : std::initializer_list<uint64_t>{FIONREAD, FIONBIO, FIOCLEX, FIONCLEX})
    TRY(add(context, SCMP_ACT_ALLOW, "ioctl", {SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xffffffff, number)}));
  // Naming a thread; asking, not setting.
  TRY(add(context, SCMP_ACT_ALLOW, "prctl", {SCMP_A0_64(SCMP_CMP_EQ, PR_SET_NAME)}));
  TRY(add(context, SCMP_ACT_ALLOW, "prctl", {SCMP_A0_64(SCMP_CMP_EQ, PR_GET_DUMPABLE)}));
  TRY(add(context, SCMP_ACT_ALLOW, "prlimit64", {SCMP_A2_64(SCMP_CMP_EQ, 0)}));
  return add(context, SCMP_ACT_ALLOW, "getrlimit");
}

}  // namespace

Result<std::string> network_filter() {
  const Context context(::seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (!context) return refused("a new filter", -ENOMEM);
  ::seccomp_arch_remove(context.get(), SCMP_ARCH_NATIVE);
  if (const int code = ::seccomp_arch_add(context.get(), SCMP_ARCH_X86_64); code != 0)
    return refused("x86-64", code);
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  TRY(add_rules(context));
  const UniqueFd memory(::memfd_create("filter", MFD_CLOEXEC));
  if (!memory.valid()) return fail_errno("jail.seccomp", "cannot make a memory file");
  if (const int code = ::seccomp_export_bpf(context.get(), memory.get()); code != 0)
    return refused("to write the filter", code);
  ::lseek(memory.get(), 0, SEEK_SET);
  return read_all(memory.get(), 64u << 10);
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
