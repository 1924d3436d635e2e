#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>

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
