// Attacks from inside: a program of ours (testing/jailee.cc) in QEMU's place tries to get out.
#include "jail/vm_jail.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <string>

#include "base/file.h"
#include "jail/unfiltered.h"

namespace firestop::jail {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = 1u << 20;

struct Said {
  int status = -1;
  std::map<std::string, std::string> results;  // by attempt
  std::string text;
  std::string operator[](const std::string& attempt) const {
    const auto found = results.find(attempt);
    return found == results.end() ? "not tried" : found->second;
  }
};

// The last word of a line is the result, or the whole rest after a known head.
Said read_answers(int fd) {
  Said said;
  said.text = read_all(fd).value_or("");
  std::istringstream lines(said.text);
  for (std::string line; std::getline(lines, line);) {
    bool whole = false;
    for (const std::string head : {"list:/dev", "list:/", "id", "descriptors", "environment"})
      if (!whole && (whole = line.starts_with(head + " "))) said.results[head] = line.substr(head.size() + 1);
    const size_t space = line.rfind(' ');
    if (!whole && space != std::string::npos) said.results[line.substr(0, space)] = line.substr(space + 1);
  }
  return said;
}

struct Pipe {
  UniqueFd read, write;
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
};

Result<Said> attack(const VmJail& jail) {
  Pipe out;
  const UniqueFd for_reading(::open("/etc/hostname", O_RDONLY | O_CLOEXEC));
  Command command;
  command.argv = {FIRESTOP_JAILEE, std::to_string(::getpid())};
  command.descriptors = {{out.write.get(), 1}, {for_reading.get(), 3}};
  TRY_ASSIGN(Jailed jailed, spawn_jailed(std::move(command), jail));
  out.write.reset();
  Said said = read_answers(out.read.get());
  said.status = jailed.child.wait();
  return said;
}

VmJail small() {
  VmJail jail;
  jail.memory = 4 * kMiB;
  jail.file_size = 64 * kMiB;
  return jail;
}

// What holds with the filter and without it.
void expect_walls(const Said& said) {
  EXPECT_EQ(said["id"], "1 0 1000 1000 firestop") << "the first process, without a parent, without rights";
  EXPECT_EQ(said["descriptors"], "0 1 2 3");
  EXPECT_EQ(said["environment"], "LC_ALL LD_LIBRARY_PATH");
  EXPECT_THAT(said["list:/dev"], AnyOf("null zero urandom", "urandom zero null"));
  EXPECT_THAT(said["list:/"],
              Not(AnyOf(HasSubstr("etc"), HasSubstr("home"), HasSubstr("root"), HasSubstr("proc"))));
  for (const char* attempt : {"read /etc/passwd", "read /proc/self/status", "read /sys", "leave upwards",
                              "write again what is open for reading"})
    EXPECT_EQ(said[attempt], "ENOENT") << attempt;
  for (const char* attempt : {"create /x", "create /dev/x"}) EXPECT_EQ(said[attempt], "EROFS") << attempt;
  // Root's files are also another's here, an ordinary user's own only lie on what is read-only.
  for (const char* attempt : {"overwrite itself", "overwrite the C library"})
    EXPECT_THAT(said[attempt], AnyOf("EROFS", "EACCES", "ETXTBSY")) << attempt;
  EXPECT_EQ(said["create /memory/x"], "ENOSPC") << "the guest's memory is the only file";
  EXPECT_EQ(said["execve /bin/sh"], "ENOENT");
  for (const char* attempt : {"mount", "remount", "umount", "chroot", "unshare mounts", "capset",
                              "sethostname", "reboot", "raise a limit"})
    EXPECT_EQ(said[attempt], "EPERM") << attempt;
  EXPECT_THAT(said["setuid 0"], AnyOf("EPERM", "EINVAL"));
  EXPECT_THAT(said["kill a process of the host"], AnyOf("EPERM", "ESRCH"));
  EXPECT_THAT(said["kill everybody"], AnyOf("EPERM", "ESRCH"));
  EXPECT_THAT(said["ptrace"], AnyOf("EPERM", "ESRCH"));
  EXPECT_THAT(said["pidfd_open"], AnyOf("EPERM", "ESRCH", "EINVAL"));
  EXPECT_THAT(said["socket packet"], "EPERM");
  EXPECT_THAT(said["setns"], Not("ok"));
  EXPECT_THAT(said["open_by_handle_at"], Not("ok"));
}

TEST(VmJail, inv03_NothingOfTheHostIsInReach) {
  const auto said = attack(small());
  ASSERT_TRUE(said) << said.error().to_string();
  SCOPED_TRACE(said->text);
  EXPECT_EQ(said->status, 0);
  expect_walls(*said);
  for (const char* attempt : {"socket inet",
                              "socket unix",
                              "socket netlink",
                              "fork",
                              "unshare user",
                              "userfaultfd",
                              "perf_event_open",
                              "keyctl",
                              "personality",
                              "kill a process of the host",
                              "kill everybody",
                              "ptrace",
                              "setns",
                              "setuid 0",
                              "process_vm_readv",
                              "bpf",
                              "init_module",
                              "mkdir",
                              "mknod",
                              "unlink the memory",
                              "open_by_handle_at"})
    EXPECT_EQ((*said)[attempt], "EPERM") << attempt;
  EXPECT_EQ((*said)["its memory"], "ok");
  for (const char* attempt : {"io_uring", "memfd_create"}) EXPECT_EQ((*said)[attempt], "ENOSYS") << attempt;
}

TEST(VmJail, inv03_TheOtherWallsHoldWithoutTheFilter) {
  VmJail jail = small();
  jail.allow(Unfiltered());
  const auto said = attack(jail);
  ASSERT_TRUE(said) << said.error().to_string();
  SCOPED_TRACE(said->text);
  expect_walls(*said);
  EXPECT_EQ((*said)["connect"], "ENETUNREACH") << "a network of its own, in which not even loopback is up";
}

class Waiting : public ::testing::Test {
 protected:
  void SetUp() override {
    Command command;
    command.argv = {FIRESTOP_JAILEE, "wait"};
    command.descriptors = {{out_.write.get(), 1}};
    auto jailed = spawn_jailed(std::move(command), small());
    ASSERT_TRUE(jailed) << jailed.error().to_string();
    jailed_ = std::move(*jailed);
    char byte;
    ASSERT_EQ(::read(out_.read.get(), &byte, 1), 1) << "it runs";
    proc_ = "/proc/" + std::to_string(jailed_.child.pid);
  }
  void TearDown() override {
    if (jailed_.child.pidfd.valid()) jailed_.child.kill_and_wait();
  }
  Pipe out_;
  Jailed jailed_;
  std::string proc_;
};

TEST_F(Waiting, inv03_AsTheHostSeesIt) {
  const std::string status = read_file(proc_ + "/status").value_or("");
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    EXPECT_THAT(status, HasSubstr(std::string(set) + ":\t0000000000000000"));
  EXPECT_THAT(status, Not(HasSubstr("Uid:\t0\t")));
  if (::geteuid() == 0) {
    EXPECT_THAT(status, HasSubstr("Groups:\t \n")) << "no group of root's";
  }
  for (const char* kind : {"user", "mnt", "pid", "ipc", "uts", "net", "cgroup"}) {
    char ours[64] = {}, theirs[64] = {};
    ASSERT_GT(::readlink((std::string("/proc/self/ns/") + kind).c_str(), ours, sizeof ours - 1), 0);
    ASSERT_GT(::readlink((proc_ + "/ns/" + kind).c_str(), theirs, sizeof theirs - 1), 0) << kind;
    EXPECT_STRNE(ours, theirs) << kind;
  }
  const std::string limits = read_file(proc_ + "/limits").value_or("");
  EXPECT_THAT(limits, HasSubstr("Max core file size        0                    0"));
  EXPECT_THAT(limits, HasSubstr("Max open files            256                  256"));
}

TEST_F(Waiting, TheMemoryIsSharedWithTheOutside) {
  struct stat st{};
  ASSERT_EQ(::fstat(jailed_.memory.get(), &st), 0);
  EXPECT_EQ(static_cast<uint64_t>(st.st_size), 4 * kMiB);
  ASSERT_EQ(::pwrite(jailed_.memory.get(), "M", 1, 0), 1);
  char byte = 0;
  const UniqueFd inside(::open((proc_ + "/root/memory/ram").c_str(), O_RDONLY | O_CLOEXEC));
  if (inside.valid()) {
    EXPECT_EQ(::read(inside.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'M');
  }
  const std::string all(4 * kMiB, 'M');
  ASSERT_EQ(::pwrite(jailed_.memory.get(), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
  EXPECT_LT(::pwrite(jailed_.memory.get(), "M", 1, 4 * kMiB), 0) << "a byte beyond the cap";
}

// The children of this process that are left, reaped or not.
std::string children() {
  return read_file("/proc/self/task/" + std::to_string(::gettid()) + "/children").value_or("?");
}

TEST(VmJail, inv04_ASetUpThatFailsHalfWayStartsNothing) {
  ASSERT_EQ(children(), "");
  for (int number = kFirstStep; number <= kLastStep; ++number) {
    VmJail jail = small();
    jail.broken = Step{number};
    const auto said = attack(jail);
    ASSERT_FALSE(said) << "step " << number;
    EXPECT_EQ(said.error().code, "jail.unavailable");
    EXPECT_THAT(said.error().message, HasSubstr(to_string(Step{number})));
    EXPECT_NE(said.error().hint, "");
    EXPECT_EQ(children(), "") << "step " << number;
  }
  VmJail jail = small();
  jail.admit = [](pid_t) -> Result<void> { return fail("test.refused", "no control group"); };
  const auto said = attack(jail);
  ASSERT_FALSE(said);
  EXPECT_EQ(children(), "");
}

TEST(VmJail, inv04_ItDiesWithTheOneWhoStartedIt) {
  Pipe out;
  const pid_t starter = ::fork();
  if (starter == 0) {
    Command command;
    command.argv = {FIRESTOP_JAILEE, "wait"};
    command.descriptors = {{out.write.get(), 1}};
    const auto jailed = spawn_jailed(std::move(command), small());
    if (!jailed) ::_exit(1);
    out.write.reset();
    for (;;) ::pause();
  }
  out.write.reset();
  char word[8];
  ASSERT_GT(::read(out.read.get(), word, sizeof word), 0);
  ASSERT_EQ(::kill(starter, SIGKILL), 0);
  ::waitpid(starter, nullptr, 0);
  pollfd ended{out.read.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, 10000), 1) << "the pipe's other end is closed when the last holder is dead";
  EXPECT_EQ(::read(out.read.get(), word, sizeof word), 0);
}

TEST(VmJail, inv03_AnOrdinaryUserMakesTheSameJail) {
  if (::geteuid() != 0) GTEST_SKIP() << "this one is an ordinary user already";
  struct stat st{};
  if (::stat(FIRESTOP_JAILEE, &st) != 0 || (st.st_mode & 5) != 5)
    GTEST_SKIP() << "others cannot read the build";
  Pipe out;
  const pid_t other = ::fork();
  if (other == 0) {
    ::dup2(out.write.get(), 1);
    const bool changed = ::setresgid(54321, 54321, 54321) == 0 && ::setresuid(54321, 54321, 54321) == 0 &&
                         ::prctl(PR_SET_DUMPABLE, 1) == 0;
    if (!changed || ::access(FIRESTOP_JAILEE, X_OK) != 0) ::_exit(3);
    const auto said = attack(small());
    const std::string text = said ? said->text : said.error().to_string();
    ::_exit(write_all(1, text) && said ? 0 : 1);
  }
  out.write.reset();
  const Said said = read_answers(out.read.get());
  int status = 0;
  ::waitpid(other, &status, 0);
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "others cannot reach the build";
  SCOPED_TRACE(said.text);
  ASSERT_EQ(status, 0);
  expect_walls(said);
}

TEST(VmJail, WhatIsNoProgramIsRefused) {
  Command command;
  command.argv = {"/no/such/program"};
  EXPECT_EQ(spawn_jailed(command, small()).error().code, "process.not_found");
  command.argv = {FIRESTOP_SOURCE_DIR "/tools/lint"};
  const auto script = spawn_jailed(command, small());
  ASSERT_FALSE(script);
  EXPECT_EQ(script.error().code, "jail.program");
}

}  // namespace
}  // namespace firestop::jail
