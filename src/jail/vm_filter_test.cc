#include "jail/vm_filter.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <string>
#include <vector>

#include "jail/bpf_verdict.h"

namespace firestop::jail {
namespace {

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kKill = SECCOMP_RET_KILL_PROCESS;
constexpr uint32_t error(int number) {
  return SECCOMP_RET_ERRNO | static_cast<uint32_t>(number);
}

class VmFilter : public ::testing::Test {
 protected:
  void SetUp() override {
    auto bytes = vm_filter();
    ASSERT_TRUE(bytes) << bytes.error().message;
    ASSERT_EQ(bytes->size() % sizeof(sock_filter), 0u);
    program_.resize(bytes->size() / sizeof(sock_filter));
    ::memcpy(program_.data(), bytes->data(), bytes->size());
  }
  uint32_t on(long number, std::vector<uint64_t> arguments = {}, uint32_t arch = AUDIT_ARCH_X86_64) const {
    seccomp_data call{};
    call.nr = static_cast<int>(number);
    call.arch = arch;
    for (size_t i = 0; i < arguments.size(); ++i) call.args[i] = arguments[i];
    const auto said = verdict(program_, call);
    EXPECT_TRUE(said) << "the filter is malformed at call " << number;
    return said.value_or(0);
  }
  std::vector<sock_filter> program_;
};

constexpr uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                             CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

TEST_F(VmFilter, inv03_Verdicts) {
  const struct {
    long number;
    std::vector<uint64_t> arguments;
    uint32_t expected;
    const char* why;
  } kRows[] = {
      {SYS_read, {}, kAllow, "disks"},
      {SYS_pwritev, {}, kAllow, "disks"},
      {SYS_openat, {}, kAllow, "libraries, firmware"},
      {SYS_futex, {}, kAllow, "threads"},
      {SYS_clone, {kThread}, kAllow, "a thread"},
      {SYS_sendmsg, {}, kAllow, "the monitor"},
      {SYS_recvmsg, {}, kAllow, "the monitor, with descriptors"},
      {SYS_ioctl, {3, 0xAE01}, kAllow, "KVM_CREATE_VM"},
      {SYS_execve, {}, kAllow, "QEMU itself; it takes this away then"},
      {SYS_seccomp, {}, kAllow, "QEMU's own filter"},
      {SYS_prlimit64, {0, 3, 0, 1}, kAllow, "what the stack's limit is"},

      {SYS_prlimit64, {0, 3, 1, 0}, error(EPERM), "another limit"},
      {SYS_setrlimit, {}, error(EPERM), "another limit"},
      {SYS_clone, {SIGCHLD}, error(EPERM), "a process"},
      {SYS_clone, {kThread | CLONE_NEWUSER}, error(EPERM), "a namespace"},
      {SYS_clone, {CLONE_VM | CLONE_VFORK | SIGCHLD}, error(EPERM), "a process by vfork"},
      {SYS_clone3, {}, error(ENOSYS), "flags in memory: the C library falls back to clone"},
      {SYS_fork, {}, error(EPERM), "a process"},
      {SYS_vfork, {}, error(EPERM), "a process"},
      {SYS_execveat, {}, error(EPERM), "a program without a name"},
      {SYS_socket, {AF_INET, SOCK_STREAM, 0}, error(EPERM), "network"},
      {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, error(EPERM), "services of the host"},
      {SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, error(EPERM), "the host's host"},
      {SYS_socketpair, {}, error(EPERM), "nothing to talk to"},
      {SYS_connect, {}, error(EPERM), "a socket that was given"},
      {SYS_bind, {}, error(EPERM), "a socket that was given"},
      {SYS_listen, {}, error(EPERM), "a socket that was given"},
      {SYS_accept4, {}, error(EPERM), "a socket that was given"},
      {SYS_ioctl, {0, TIOCSTI}, error(EPERM), "typing into the terminal"},
      {SYS_ioctl, {0, TIOCLINUX}, error(EPERM), "pasting into the console"},
      {SYS_ioctl, {0, (1ull << 32) | TIOCSTI}, error(EPERM), "the kernel looks at 32 bits only"},
      {SYS_ioctl, {0, TIOCSCTTY}, error(EPERM), "a terminal"},
      {SYS_ioctl, {0, FIONBIO}, kAllow, "sockets"},
      {SYS_ioctl, {0, 0x800454cf}, kAllow, "TUNGETFEATURES of a tap that was given"},
      {SYS_ioctl, {0, 0x1277}, error(EPERM), "BLKDISCARD: no device of the host's"},
      {SYS_ioctl, {0, 0x40046602}, error(EPERM), "FS_IOC_SETFLAGS of a disk's file"},
      {SYS_ptrace, {}, error(EPERM), "other processes"},
      {SYS_process_vm_writev, {}, error(EPERM), "other processes"},
      {SYS_kill, {}, error(EPERM), "other processes"},
      {SYS_pidfd_open, {}, error(EPERM), "other processes"},
      {SYS_pidfd_getfd, {}, error(EPERM), "other processes' files"},
      {SYS_mount, {}, error(EPERM), "the root"},
      {SYS_umount2, {}, error(EPERM), "the root"},
      {SYS_pivot_root, {}, error(EPERM), "the root"},
      {SYS_chroot, {}, error(EPERM), "the root"},
      {SYS_open_by_handle_at, {}, error(EPERM), "files past every mount"},
      {SYS_setns, {}, error(EPERM), "namespaces"},
      {SYS_unshare, {CLONE_NEWUSER}, error(EPERM), "capabilities in a namespace"},
      {SYS_setuid, {}, error(EPERM), "identity"},
      {SYS_capset, {}, error(EPERM), "rights"},
      {SYS_chmod, {}, error(EPERM), "rights"},
      {SYS_bpf, {}, error(EPERM), "a large part of the kernel"},
      {SYS_perf_event_open, {}, error(EPERM), "a large part of the kernel"},
      {SYS_io_uring_setup, {}, error(ENOSYS), "calls that no filter sees; QEMU does without"},
      {SYS_io_uring_enter, {}, error(EPERM), "calls that no filter sees"},
      {SYS_userfaultfd, {}, error(EPERM), "stops the kernel in the middle of a copy"},
      {SYS_memfd_create, {}, error(ENOSYS), "files beyond the one that is capped"},
      {SYS_keyctl, {}, error(EPERM), "keys"},
      {SYS_init_module, {}, error(EPERM), "code in the kernel"},
      {SYS_kexec_load, {}, error(EPERM), "another kernel"},
      {SYS_clock_settime, {}, error(EPERM), "the host's clock"},
      {SYS_personality, {0x0400000}, error(EPERM), "executable data"},
      {SYS_unlink, {}, error(EPERM), "no files to make or remove"},
      {SYS_rename, {}, error(EPERM), "no files to make or remove"},
      {SYS_mkdir, {}, error(EPERM), "no files to make or remove"},
      {1000, {}, error(EPERM), "a call that does not exist yet"},
  };
  for (const auto& row : kRows)
    EXPECT_EQ(on(row.number, row.arguments), row.expected) << "call " << row.number << ": " << row.why;
}

TEST_F(VmFilter, inv03_OtherWaysToCallEndTheProcess) {
  EXPECT_EQ(on(SYS_read, {}, AUDIT_ARCH_I386), kKill) << "int 0x80 has other numbers";
  EXPECT_EQ(on(0x40000000 | SYS_read), kKill) << "x32";
}

TEST_F(VmFilter, HasNoOtherAnswers) {
  for (int number = 0; number < 2000; ++number)
    EXPECT_THAT(on(number), ::testing::AnyOf(kAllow, error(EPERM), error(ENOSYS)));
  EXPECT_LE(program_.size(), static_cast<size_t>(BPF_MAXINSNS));
  EXPECT_EQ(*vm_filter(), *vm_filter());
}

}  // namespace
}  // namespace firestop::jail
