#include "jail/parser_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <vector>

#include "jail/bpf_verdict.h"

namespace firestop::jail {
namespace {

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kKill = SECCOMP_RET_KILL_PROCESS;
constexpr uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM, kAbsent = SECCOMP_RET_ERRNO | ENOSYS;
constexpr uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;

TEST(ParserFilter, inv03_Verdicts) {
  const auto bytes = parser_filter();
  ASSERT_TRUE(bytes) << bytes.error().message;
  std::vector<sock_filter> program(bytes->size() / sizeof(sock_filter));
  ::memcpy(program.data(), bytes->data(), bytes->size());
  const struct {
    long number;
    std::vector<uint64_t> arguments;
    uint32_t expected;
    const char* why;
  } kRows[] = {
      {SYS_read, {}, kAllow, "what came"},
      {SYS_openat, {0, 0, O_RDWR | O_CREAT, 0644}, kAllow, "packs"},
      {SYS_rename, {}, kAllow, "packs get their names at the end"},
      {SYS_clone, {kThread}, kAllow, "threads"},
      {SYS_chmod, {0, 0444}, kAllow, "packs are read-only"},
      {SYS_prctl, {PR_SET_PDEATHSIG, SIGKILL}, kAllow, "it dies with us"},

      {SYS_openat, {0, 0, O_RDWR | O_CREAT, 04755}, kRefused, "a set-uid program on the host"},
      {SYS_open, {0, O_RDWR | O_CREAT, 02755}, kRefused, "a set-gid program on the host"},
      {SYS_chmod, {0, 04755}, kRefused, "a set-uid program on the host"},
      {SYS_fchmod, {0, 06755}, kRefused, "a set-uid program on the host"},
      {SYS_fchmodat, {0, 0, 02755}, kRefused, "a set-gid program on the host"},
      {SYS_mkdir, {0, 02755}, kRefused, "a group for what lies in it"},
      {SYS_mknod, {}, kRefused, "a device"},
      {SYS_symlink, {}, kRefused, "a way for others to follow"},
      {SYS_symlinkat, {}, kRefused, "a way for others to follow"},
      {SYS_chown, {}, kRefused, "another's files"},
      {SYS_setxattr, {}, kRefused, "capabilities of a file"},
      {SYS_fork, {}, kRefused, "a process"},
      {SYS_vfork, {}, kRefused, "a process"},
      {SYS_clone, {SIGCHLD}, kRefused, "a process"},
      {SYS_clone, {kThread | CLONE_NEWUSER}, kRefused, "a namespace"},
      {SYS_clone3, {}, kAbsent, "flags in memory"},
      {SYS_socket, {AF_INET, SOCK_STREAM, 0}, kRefused, "network"},
      {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, kRefused, "services of the host"},
      {SYS_socketpair, {}, kRefused, "sockets"},
      {SYS_sendmsg, {}, kRefused, "sockets that it was given"},
      {SYS_ioctl, {0, TIOCSTI}, kRefused, "typing into the terminal"},
      {SYS_prctl, {PR_SET_DUMPABLE, 1}, kRefused, "settings of the process"},
      {SYS_prlimit64, {0, 7, 1, 0}, kRefused, "another limit"},
      {SYS_kill, {}, kRefused, "others"},
      {SYS_ptrace, {}, kRefused, "others"},
      {SYS_unshare, {CLONE_NEWUSER}, kRefused, "capabilities in a namespace"},
      {SYS_mount, {}, kRefused, "the root"},
      {SYS_open_tree, {}, kRefused, "the root"},
      {SYS_move_mount, {}, kRefused, "the root"},
      {SYS_chroot, {}, kRefused, "the root"},
      {SYS_open_by_handle_at, {}, kRefused, "files past every mount"},
      {SYS_io_uring_setup, {}, kAbsent, "calls that no filter sees"},
      {SYS_memfd_create, {}, kAbsent, "files beyond what is capped"},
      {SYS_bpf, {}, kRefused, "a large part of the kernel"},
      {SYS_keyctl, {}, kRefused, "keys"},
      {1000, {}, kRefused, "a call that does not exist yet"},
  };
  const auto on = [&](long number, const std::vector<uint64_t>& arguments, uint32_t arch) {
    seccomp_data call{};
    call.nr = static_cast<int>(number);
    call.arch = arch;
    for (size_t i = 0; i < arguments.size(); ++i) call.args[i] = arguments[i];
    return verdict(program, call).value_or(0);
  };
  for (const auto& row : kRows)
    EXPECT_EQ(on(row.number, row.arguments, AUDIT_ARCH_X86_64), row.expected)
        << "call " << row.number << ": " << row.why;
  EXPECT_EQ(on(SYS_read, {}, AUDIT_ARCH_I386), kKill);
  EXPECT_EQ(on(0x40000000 | SYS_read, {}, AUDIT_ARCH_X86_64), kKill);
}

}  // namespace
}  // namespace firestop::jail
