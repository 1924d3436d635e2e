// A program of ours (testing/jailee.cc) in git's place tries to get out.
#include "jail/parser_jail.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/file.h"

namespace firestop::jail {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ParserJailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/firestop-parser-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
    for (const char* folder : {"/read", "/write", "/write/inner", "/hidden"})
      ASSERT_EQ(::mkdir((root_ + folder).c_str(), 0777), 0);
    ASSERT_TRUE(write_file_atomic(root_ + "/read/file", "content", 0666));
    ASSERT_EQ(::chmod((root_ + "/read/file").c_str(), 0666), 0);
  }
  void TearDown() override { (void)remove_tree(root_); }

  std::vector<Folder> folders() const {
    return {{root_ + "/read"}, {root_ + "/write", true}, {root_ + "/write/inner"}};
  }
  // What the program printed, and "status N".
  static Result<std::string> run_in(const ParserJail& jail, std::vector<std::string> argv,
                                    const ParserLimits& limits = {}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("test.pipe", "pipe");
    const UniqueFd out(ends[0]);
    UniqueFd in(ends[1]);
    Command command;
    command.argv = std::move(argv);
    command.env = std::vector<std::string>{"A=b"};
    command.descriptors = {{in.get(), 1}};
    TRY_ASSIGN(Child child, jail.start(std::move(command), limits));
    in.reset();
    TRY_ASSIGN(std::string said, read_all(out.get(), 1u << 20));
    return said + "status " + std::to_string(child.wait()) + "\n";
  }
  Result<std::string> attack(Identity owner) const {
    TRY_ASSIGN(const ParserJail jail, ParserJail::prepare(FIRESTOP_JAILEE, folders(), owner));
    return run_in(jail, {"", std::to_string(::getpid()), root_});
  }

  std::string root_;
};

void expect_walls(const std::string& said, const std::string& id) {
  SCOPED_TRACE(said);
  EXPECT_THAT(said, HasSubstr("id 1 0 " + id + " firestop\n"));
  EXPECT_THAT(said, HasSubstr("descriptors 0 1 2\n"));
  EXPECT_THAT(said, HasSubstr("environment A LD_LIBRARY_PATH\n"));
  for (const char* line : {"read /etc/passwd ENOENT",
                           "read /proc/self/status ENOENT",
                           "read /sys ENOENT",
                           "leave upwards ENOENT",
                           "create /x EROFS",
                           "socket inet EPERM",
                           "socket unix EPERM",
                           "fork EPERM",
                           "unshare user EPERM",
                           "kill a process of the host EPERM",
                           "ptrace EPERM",
                           "mount EPERM",
                           "chroot EPERM",
                           "setuid 0 EPERM",
                           "capset EPERM",
                           "bpf EPERM",
                           "keyctl EPERM",
                           "mknod EPERM",
                           "open_by_handle_at EPERM",
                           "execve /bin/sh ENOENT",
                           "raise a limit EPERM",
                           "read a file of a folder ok",
                           "write a file of a read-only folder EROFS",
                           "create in a read-only folder EROFS",
                           "create in a writable folder ok",
                           "create in a read-only folder of a writable one EROFS",
                           "see a folder that it was not given ENOENT",
                           "leave a folder ENOENT",
                           "make a set-uid file EPERM"})
    EXPECT_THAT(said, HasSubstr(std::string(line) + "\n"));
  EXPECT_THAT(said, HasSubstr("status 0\n"));
}

TEST_F(ParserJailTest, inv03_NothingButItsFoldersIsInReach) {
  const auto said = attack({::geteuid(), ::getegid()});
  ASSERT_TRUE(said) << said.error().to_string();
  expect_walls(*said, std::to_string(::geteuid()) + " " + std::to_string(::getegid()));
  EXPECT_TRUE(exists(root_ + "/write/new"));
}

TEST_F(ParserJailTest, inv03_RootsChildIsTheOwnerOfTheFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(::chown((root_ + "/write").c_str(), 54321, 54322), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0700), 0);  // which the owner could not pass
  const auto said = attack({54321, 54322});
  ASSERT_TRUE(said) << said.error().to_string();
  expect_walls(*said, "54321 54322");
  struct stat status{};
  ASSERT_EQ(::stat((root_ + "/write/new").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 54321u);
}

TEST_F(ParserJailTest, inv03_AnOrdinaryUserMakesTheSameJail) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other test shows it";
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  for (const char* folder : {"", "/write", "/read", "/write/inner"})
    ASSERT_EQ(::chown((root_ + folder).c_str(), 54321, 54321), 0);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const bool changed = ::setresgid(54321, 54321, 54321) == 0 && ::setresuid(54321, 54321, 54321) == 0 &&
                         ::prctl(PR_SET_DUMPABLE, 1) == 0;
    const auto said = attack({0, 0});  // what an ordinary user has no say in
    const std::string text = !changed ? "not changed" : said ? *said : said.error().to_string();
    (void)write_all(ends[1], text);
    ::_exit(0);
  }
  ::close(ends[1]);
  const UniqueFd read_end(ends[0]);
  const std::string said = read_all(read_end.get(), 1u << 20).value_or("");
  ::waitpid(other, nullptr, 0);
  expect_walls(said, "54321 54321");
}

TEST_F(ParserJailTest, inv04_ASetUpThatFailsHalfWayStartsNothing) {
  for (int number = kFirstStep; number <= kLastStep; ++number) {
    auto jail = ParserJail::prepare(FIRESTOP_JAILEE, folders(), {::geteuid(), ::getegid()});
    ASSERT_TRUE(jail);
    jail->break_at(Step{number});
    const auto said = run_in(*jail, {"", "0", root_});
    ASSERT_FALSE(said) << to_string(Step{number});
    EXPECT_EQ(said.error().code, "jail.unavailable");
    EXPECT_THAT(said.error().message, HasSubstr(to_string(Step{number})));
    EXPECT_FALSE(exists(root_ + "/write/new"));
  }
  auto lost = ParserJail::prepare(FIRESTOP_JAILEE, {{root_ + "/no such"}}, {::geteuid(), ::getegid()});
  ASSERT_TRUE(lost);
  EXPECT_EQ(run_in(*lost, {"", "0", root_}).error().code, "jail.unavailable");
}

TEST_F(ParserJailTest, inv05_MemoryFilesAndTimeAreBounded) {
  const auto jail = ParserJail::prepare(FIRESTOP_JAILEE, folders(), {::geteuid(), ::getegid()});
  ASSERT_TRUE(jail);
  EXPECT_THAT(*run_in(*jail, {"", "eat memory"}, {.address_space = 64u << 20}), HasSubstr("ENOMEM after"));
  EXPECT_THAT(*run_in(*jail, {"", "eat disk", root_}, {.file_size = 1u << 20}), HasSubstr("EFBIG after"));
  EXPECT_THAT(*run_in(*jail, {"", "eat time"}, {.processor_seconds = 1}), HasSubstr("status 9\n"));
}

}  // namespace
}  // namespace firestop::jail
