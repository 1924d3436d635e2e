#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace firestop {
namespace {

TEST(Run, CollectsOutputAndStatus) {
  auto result = run({.argv = {"sh", "-c", "cat; echo e >&2; exit 3"}}, {.input = "hello"});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->out, "hello");
  EXPECT_EQ(result->err, "e\n");
  EXPECT_EQ(result->exit_code(), 3);
}

TEST(Run, NamesWhatCannotBeStarted) {
  EXPECT_EQ(run({.argv = {"no-such-program-here"}}).error().code, "process.not_found");
  EXPECT_EQ(run({.argv = {"true"}, .directory = "/no/such"}).error().code, "process.start");
}

TEST(Run, StopsAtItsLimits) {
  EXPECT_EQ(run({.argv = {"sleep", "60"}}, {.timeout = std::chrono::milliseconds(50)}).error().code,
            "process.timeout");
  EXPECT_EQ(run({.argv = {"yes"}}, {.output_limit = 1000}).error().code, "process.output_limit");
}

// A shell's children, too: a command that hangs leaves nothing behind.
TEST(Run, WhatItStartedEndsWithIt) {
  const std::string note = ::testing::TempDir() + "process_test." + std::to_string(::getpid());
  const auto ended = run({.argv = {"sh", "-c", "sleep 60 & echo $! > " + note + "; wait"}},
                         {.timeout = std::chrono::milliseconds(1000)});
  EXPECT_EQ(ended.error().code, "process.timeout");
  const pid_t left = std::stoi(read_file(note).value());
  ::unlink(note.c_str());
  bool gone = false;  // killed with the shell; whoever inherits it reaps it
  for (int i = 0; i < 200 && !gone; ++i) {
    const auto stat = read_file("/proc/" + std::to_string(left) + "/stat");
    gone = !stat || stat->find(") Z ") != std::string::npos;
    if (!gone) ::usleep(10000);
  }
  EXPECT_TRUE(gone);
}

TEST(Run, PassesOnlyTheDescriptorsNamed) {
  const int leaked = ::open("/dev/null", O_RDONLY);  // deliberately not close-on-exec
  auto out = run_checked({.argv = {"sh", "-c", "ls /proc/self/fd | wc -l"}, .descriptors = {{leaked, 7}}});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(std::stoi(*out), 5);  // 0, 1, 2, 7 and the one that ls itself opened
  ::close(leaked);
}

TEST(Run, CheckedSaysWhy) {
  auto out = run_checked({.argv = {"sh", "-c", "echo broken >&2; exit 4"}});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "sh -c: exit status 4: broken");
}

TEST(Spawn, AChildThatIsKilledIsReaped) {
  auto child = spawn({.argv = {"sleep", "60"}});
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(describe_status(child->kill_and_wait()), "killed by signal 9 (Killed)");
}

}  // namespace
}  // namespace firestop
