#include "jail/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path.h"

namespace firestop::jail {
namespace {

using ::testing::HasSubstr;

constexpr CgroupLimits kLimits{.memory = 1u << 30, .processes = 100, .cpus = 0.5};

// A host's /proc and /sys as ordinary files: what is written can be read back.
class FakeTree : public ::testing::Test {
 protected:
  FakeTree() {
    char name[] = "/tmp/cgroup_test.XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~FakeTree() override { (void)remove_tree(root_); }
  void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(make_directories(root_ + parent_path(path), 0755));
    ASSERT_TRUE(write_file_atomic(root_ + path, text, 0644));
  }
  std::string get(const std::string& path) { return read_file(root_ + path).value_or("(missing)"); }
  std::string root_;
};

TEST_F(FakeTree, Version2Delegated) {
  put("/proc/self/cgroup", "0::/user.slice/app.scope\n");
  put("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");
  const std::string group = "/sys/fs/cgroup/user.slice/app.scope";
  put(group + "/cgroup.controllers", "cpu memory pids\n");
  put(group + "/cgroup.subtree_control", "cpu memory pids\n");
  {
    const auto made = Cgroup::make(root_, "20260101-000000-abc", kLimits);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->caps().hierarchy, "v2");
    EXPECT_TRUE(made->caps().memory && made->caps().processes && made->caps().cpu);
    EXPECT_EQ(made->caps().why, "");
    const std::string own = group + "/firestop-20260101-000000-abc";
    EXPECT_EQ(get(own + "/memory.max"), "1073741824");
    EXPECT_EQ(get(own + "/pids.max"), "100");
    EXPECT_EQ(get(own + "/cpu.max"), "50000 100000") << "half a processor";
    ASSERT_TRUE(made->admit(4711));
    EXPECT_EQ(get(own + "/cgroup.procs"), "4711");
  }
  EXPECT_FALSE(exists(root_ + group + "/firestop-20260101-000000-abc")) << "removed at the end";
}

TEST_F(FakeTree, Version2WithoutDelegation) {
  put("/proc/self/cgroup", "0::/app.scope\n");
  put("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");
  put("/sys/fs/cgroup/app.scope/cgroup.controllers", "\n");
  const auto made = Cgroup::make(root_, "r1", kLimits);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->caps().hierarchy, "none");
  EXPECT_THAT(made->caps().why, HasSubstr("no control group"));
  EXPECT_TRUE(made->admit(1)) << "nothing is promised, nothing is broken";
  EXPECT_FALSE(exists(root_ + "/sys/fs/cgroup/app.scope/firestop-r1"));
}

TEST_F(FakeTree, Version1ForRootWithWhatIsThere) {
  put("/proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/\n0::/\n");
  put("/sys/fs/cgroup/memory/box/tasks", "");
  put("/sys/fs/cgroup/cpu/tasks", "");
  {
    const auto made = Cgroup::make(root_, "r1", kLimits);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->caps().hierarchy, "v1");
    EXPECT_TRUE(made->caps().memory && made->caps().cpu);
    EXPECT_FALSE(made->caps().processes);
    EXPECT_THAT(made->caps().why, HasSubstr("processes"));
    EXPECT_EQ(get("/sys/fs/cgroup/memory/box/firestop-r1/memory.limit_in_bytes"), "1073741824");
    EXPECT_EQ(get("/sys/fs/cgroup/cpu/firestop-r1/cpu.cfs_quota_us"), "50000");
  }
  EXPECT_FALSE(exists(root_ + "/sys/fs/cgroup/memory/box/firestop-r1"));
  EXPECT_FALSE(exists(root_ + "/sys/fs/cgroup/cpu/firestop-r1"));
}

TEST_F(FakeTree, inv04_TheSweepTouchesDeadRunsOnly) {
  put("/proc/self/cgroup", "4:memory:/\n");
  for (const char* name :
       {"firestop-dead", "firestop-alive", "firestop-", "firestop-a_b", "other-dead", "dead"})
    ASSERT_TRUE(make_directories(root_ + "/sys/fs/cgroup/memory/" + name, 0755));
  EXPECT_EQ(sweep_cgroups(root_, [](const std::string& run) { return run != "alive"; }), 1u);
  EXPECT_FALSE(exists(root_ + "/sys/fs/cgroup/memory/firestop-dead"));
  for (const char* name : {"firestop-alive", "firestop-", "firestop-a_b", "other-dead", "dead"})
    EXPECT_TRUE(exists(root_ + "/sys/fs/cgroup/memory/" + name)) << name;
}

TEST_F(FakeTree, NamesThatLeaveAreRefused) {
  for (const char* run : {"", "..", "a/b", "-a", "a b"})
    EXPECT_EQ(Cgroup::make(root_, run, kLimits).error().code, "jail.cgroup") << run;
  put("/proc/self/cgroup", "0::/../escape\n");
  put("/sys/fs/cgroup/cgroup.controllers", "\n");
  EXPECT_EQ(Cgroup::make(root_, "r1", kLimits)->caps().hierarchy, "none");
}

}  // namespace
}  // namespace firestop::jail
