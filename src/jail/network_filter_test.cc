#include "jail/network_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "jail/bpf_verdict.h"
#include "jail/landlock.h"

namespace firestop::jail {
namespace {

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kKill = SECCOMP_RET_KILL_PROCESS;
constexpr uint32_t error(int number) {
  return SECCOMP_RET_ERRNO | static_cast<uint32_t>(number);
}

class NetworkFilter : public ::testing::Test {
 protected:
  void SetUp() override {
    auto bytes = network_filter();
    ASSERT_TRUE(bytes) << bytes.error().message;
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

TEST_F(NetworkFilter, inv08_Verdicts) {
  const struct {
    long number;
    std::vector<uint64_t> arguments;
    uint32_t expected;
    const char* why;
  } kRows[] = {
      {SYS_accept4, {}, kAllow, "the guest's connections"},
      {SYS_connect, {}, kAllow, "origins"},
      {SYS_recvmsg, {}, kAllow, "datagrams that are swallowed"},
      {SYS_socket, {AF_INET, SOCK_STREAM, 0}, kAllow, "origins"},
      {SYS_socket, {AF_INET6, SOCK_DGRAM, 0}, kAllow, "the resolver"},
      {SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, kAllow, "the resolver orders addresses"},
      {SYS_clone, {kThread}, kAllow, "look-ups"},
      {SYS_openat, {}, kAllow, "what Landlock left"},
      {SYS_getrandom, {}, kAllow, "TLS"},
      {SYS_mlock, {}, kAllow, "values of credentials"},

      {SYS_socket, {AF_PACKET, SOCK_RAW, 3}, error(EPERM), "others' packets"},
      {SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, error(EPERM), "machines of this host"},
      {SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}, error(EPERM), "a large part of the kernel"},
      {SYS_execve, {}, error(EPERM), "programs"},
      {SYS_execveat, {}, error(EPERM), "programs"},
      {SYS_fork, {}, error(EPERM), "processes"},
      {SYS_vfork, {}, error(EPERM), "processes"},
      {SYS_clone, {SIGCHLD}, error(EPERM), "processes"},
      {SYS_clone, {kThread | CLONE_NEWUSER}, error(EPERM), "a namespace"},
      {SYS_clone3, {}, error(ENOSYS), "flags in memory: the C library falls back to clone"},
      {SYS_ptrace, {}, error(EPERM), "other processes"},
      {SYS_process_vm_readv, {}, error(EPERM), "other processes"},
      {SYS_process_vm_writev, {}, error(EPERM), "other processes"},
      {SYS_kill, {}, error(EPERM), "other processes"},
      {SYS_pidfd_open, {}, error(EPERM), "other processes"},
      {SYS_pidfd_getfd, {}, error(EPERM), "other processes' files"},
      {SYS_prctl, {PR_SET_DUMPABLE, 1}, error(EPERM), "opening itself to others"},
      {SYS_prctl, {PR_SET_NAME}, kAllow, "threads have names"},
      {SYS_setrlimit, {}, error(EPERM), "core files"},
      {SYS_prlimit64, {0, 4, 1, 0}, error(EPERM), "core files"},
      {SYS_unlink, {}, error(EPERM), "files"},
      {SYS_rename, {}, error(EPERM), "files"},
      {SYS_mkdir, {}, error(EPERM), "files"},
      {SYS_chmod, {}, error(EPERM), "files"},
      {SYS_truncate, {}, error(EPERM), "files"},
      {SYS_mount, {}, error(EPERM), "the root"},
      {SYS_chroot, {}, error(EPERM), "the root"},
      {SYS_setns, {}, error(EPERM), "namespaces"},
      {SYS_unshare, {CLONE_NEWUSER}, error(EPERM), "capabilities in a namespace"},
      {SYS_setuid, {}, error(EPERM), "identity"},
      {SYS_ioctl, {0, TIOCSTI}, error(EPERM), "typing into a terminal"},
      {SYS_ioctl, {0, FIONBIO}, kAllow, "sockets"},
      {SYS_io_uring_setup, {}, error(ENOSYS), "calls that no filter sees"},
      {SYS_bpf, {}, error(EPERM), "a large part of the kernel"},
      {SYS_memfd_create, {}, error(ENOSYS), "memory as files"},
      {SYS_keyctl, {}, error(EPERM), "keys"},
      {SYS_seccomp, {}, error(EPERM), "nothing to add"},
      {1000, {}, error(EPERM), "a call that does not exist yet"},
  };
  for (const auto& row : kRows)
    EXPECT_EQ(on(row.number, row.arguments), row.expected) << "call " << row.number << ": " << row.why;
  EXPECT_EQ(on(SYS_read, {}, AUDIT_ARCH_I386), kKill) << "int 0x80 has other numbers";
  EXPECT_EQ(on(0x40000000 | SYS_read), kKill) << "x32";
}

// Runs `body` in a child, which may give up what it likes; its exit status.
int in_child(int (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(LockedDown, inv08_NoFileButThoseThatAreNamed) {
  EXPECT_EQ(in_child([] {
              const auto done = read_only_these({"/etc/hosts", "/usr/share", "/no/such/file"});
              if (!done) return 1;
              if (*done == Landlocked::kNotHere) return 77;
              if (::open("/etc/hosts", O_RDONLY) < 0) return 2;
              if (::open("/usr/share", O_RDONLY | O_DIRECTORY) < 0) return 3;
              if (::open("/etc/passwd", O_RDONLY) >= 0) return 4;
              if (::open("/etc/hosts", O_RDWR) >= 0) return 5;
              if (::open("/tmp/firestop-landlock", O_WRONLY | O_CREAT, 0600) >= 0) return 6;
              if (::open("/proc/self/mem", O_RDWR) >= 0) return 7;
              if (::open("/proc/self/environ", O_RDONLY) >= 0) return 8;
              return 0;
            }),
            0);
}

TEST(LockedDown, inv08_EveryThreadIsFiltered) {
  EXPECT_EQ(in_child([] {
              const auto filter = network_filter();
              int other = -1;
              std::thread early([&] {
                while (::unshare(0) == 0) ::usleep(1000);  // until the filter is here, too
                other = ::fork() < 0 && errno == EPERM ? 0 : 1;
              });
              if (!filter || !drop_capabilities() || !install_filter(*filter)) return 1;
              early.join();
              if (other != 0) return 2;
              if (::fork() >= 0 || errno != EPERM) return 3;
              if (::socket(AF_PACKET, SOCK_RAW, 0) >= 0) return 4;
              return ::socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 0 : 5;
            }),
            0);
}

}  // namespace
}  // namespace firestop::jail
