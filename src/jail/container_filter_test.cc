#include "jail/container_filter.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
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

class ContainerFilter : public ::testing::Test {
 protected:
  void SetUp() override {
    auto bytes = container_filter();
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

TEST_F(ContainerFilter, IsOfASizeThatTheKernelTakes) {
  EXPECT_GT(program_.size(), 100u);
  EXPECT_LE(program_.size(), static_cast<size_t>(BPF_MAXINSNS));
}

TEST_F(ContainerFilter, IsTheSameEveryTime) {
  EXPECT_EQ(*container_filter(), *container_filter());
}

TEST_F(ContainerFilter, Verdicts) {
  const struct {
    long number;
    std::vector<uint64_t> arguments;
    uint32_t expected;
    const char* why;
  } kRows[] = {
      {SYS_read, {}, kAllow, "ordinary"},
      {SYS_execve, {}, kAllow, "ordinary"},
      {SYS_fork, {}, kAllow, "ordinary"},
      {SYS_futex, {}, kAllow, "ordinary"},
      {SYS_statx, {}, kAllow, "ordinary"},
      {SYS_ptrace, {}, kAllow, "debuggers of one's own processes"},
      {SYS_mknod, {}, kAllow, "fifos; devices need a capability, and file systems are nodev"},
      {SYS_mount, {}, error(EPERM), "no mounts"},
      {SYS_umount2, {}, error(EPERM), "taking a mask off /proc"},
      {SYS_pivot_root, {}, error(EPERM), "leaving the root"},
      {SYS_chroot, {}, error(EPERM), "leaving the root"},
      {SYS_open_by_handle_at, {}, error(EPERM), "files by handle, past every mount"},
      {SYS_unshare, {CLONE_NEWUSER}, error(EPERM), "capabilities in a user namespace"},
      {SYS_setns, {}, error(EPERM), "other namespaces"},
      {SYS_init_module, {}, error(EPERM), "code in the kernel"},
      {SYS_finit_module, {}, error(EPERM), "code in the kernel"},
      {SYS_kexec_load, {}, error(EPERM), "another kernel"},
      {SYS_bpf, {}, error(EPERM), "a large part of the kernel"},
      {SYS_perf_event_open, {}, error(EPERM), "a large part of the kernel"},
      {SYS_io_uring_setup, {}, error(EPERM), "calls that no filter sees"},
      {SYS_userfaultfd, {}, error(EPERM), "stops the kernel in the middle of a copy"},
      {SYS_keyctl, {}, error(EPERM), "keys are not per container"},
      {SYS_add_key, {}, error(EPERM), "keys are not per container"},
      {SYS_clock_settime, {}, error(EPERM), "the machine's clock"},
      {SYS_reboot, {}, error(EPERM), "the machine"},
      {SYS_syslog, {}, error(EPERM), "the kernel's log"},
      {SYS_quotactl, {}, error(EPERM), "no use without a capability"},

      {SYS_clone, {SIGCHLD}, kAllow, "fork"},
      {SYS_clone, {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD}, kAllow, "a thread"},
      {SYS_clone, {CLONE_NEWUSER | SIGCHLD}, error(EPERM), "a namespace"},
      {SYS_clone, {CLONE_NEWNS}, error(EPERM), "a namespace"},
      {SYS_clone, {CLONE_NEWPID}, error(EPERM), "a namespace"},
      {SYS_clone, {CLONE_NEWNET}, error(EPERM), "a namespace"},
      {SYS_clone, {CLONE_NEWUTS}, error(EPERM), "a namespace"},
      {SYS_clone, {CLONE_NEWIPC}, error(EPERM), "a namespace"},
      {SYS_clone, {CLONE_NEWCGROUP}, error(EPERM), "a namespace"},
      {SYS_clone, {(1ull << 32) | CLONE_NEWUSER}, error(EPERM), "the kernel looks at 32 bits only"},
      {SYS_clone3, {}, error(ENOSYS), "flags in memory: C libraries fall back to clone"},

      {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, kAllow, "local"},
      {SYS_socket, {AF_INET, SOCK_STREAM, 0}, kAllow, "loopback, and later the proxy"},
      {SYS_socket, {AF_INET6, SOCK_DGRAM, 0}, kAllow, "loopback"},
      {SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, kAllow, "the route protocol: getifaddrs(3)"},
      {SYS_socket, {AF_NETLINK, SOCK_RAW, 9}, error(EAFNOSUPPORT), "audit"},
      {SYS_socket, {AF_NETLINK, SOCK_RAW, 12}, error(EAFNOSUPPORT), "netfilter"},
      {SYS_socket, {AF_PACKET, SOCK_RAW, 0}, error(EAFNOSUPPORT), "raw packets"},
      {SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, error(EAFNOSUPPORT), "a way to the host"},
      {SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}, error(EAFNOSUPPORT), "the kernel's ciphers"},
      {SYS_socket, {AF_AX25, SOCK_SEQPACKET, 0}, error(EAFNOSUPPORT), "rare and full of holes"},
      {SYS_socket, {0xffffffff, SOCK_STREAM, 0}, error(EAFNOSUPPORT), "beyond all"},
      {SYS_socket, {(1ull << 32) | AF_PACKET, SOCK_RAW, 0}, error(EAFNOSUPPORT), "32 bits only"},

      {SYS_personality, {0xffffffff}, kAllow, "the question"},
      {SYS_personality, {0x0400000 /* READ_IMPLIES_EXEC */}, error(ENOSYS), "executable data"},
      {1000, {}, error(ENOSYS), "a call that does not exist yet"},
      {462, {}, error(ENOSYS), "newer than the kernel"},
  };
  for (const auto& row : kRows)
    EXPECT_EQ(on(row.number, row.arguments), row.expected) << "call " << row.number << ": " << row.why;
}

TEST_F(ContainerFilter, OtherWaysToCallEndTheProcess) {
  EXPECT_EQ(on(SYS_read, {}, AUDIT_ARCH_I386), kKill) << "int 0x80 has other numbers";
  EXPECT_EQ(on(3, {}, AUDIT_ARCH_AARCH64), kKill);
  EXPECT_EQ(on(0x40000000 | SYS_read), kKill) << "x32";
  EXPECT_EQ(on(0x40000000 | SYS_mount), kKill) << "x32";
  EXPECT_EQ(on(-1), error(ENOSYS)) << "what a tracer leaves to skip a call; none in the x32 range";
}

// Every number, also those that no header here knows, has one of the answers that we mean.
TEST_F(ContainerFilter, HasNoOtherAnswers) {
  for (int number = 0; number < 2000; ++number)
    EXPECT_THAT(on(number), ::testing::AnyOf(kAllow, error(EPERM), error(ENOSYS), error(EAFNOSUPPORT)));
}

}  // namespace
}  // namespace firestop::jail
