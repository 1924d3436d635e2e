#include "jail/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "jail/cgroup_site.h"

namespace firestop::jail {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr CgroupLimits kLimits{.memory = 1u << 30, .processes = 100, .cpus = 0.5};
const std::string kGroup = "/sys/fs/cgroup/user.slice/app.scope";

// A host's /proc and /sys as ordinary files: what is written can be read back, and nothing reacts to it.
// tests/integration/cgroup_test.py does the same with a kernel.
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
  // Our own group, with controllers and processes.
  void put_group(const std::string& procs, const std::string& handed) {
    put("/proc/self/cgroup", "0::/user.slice/app.scope\n");
    put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    put(kGroup + "/cgroup.controllers", "cpu memory pids\n");
    put(kGroup + "/cgroup.type", "domain\n");
    put(kGroup + "/cgroup.procs", procs);
    put(kGroup + "/cgroup.subtree_control", handed);
  }
  void put_process(int pid, int parent) {
    put("/proc/" + std::to_string(pid) + "/stat",
        std::to_string(pid) + " (a) b) S " + std::to_string(parent) + " 1 1");
  }
  CgroupSite site() { return find_cgroups(root_); }
  std::string root_;
};

TEST_F(FakeTree, Version2WithControllersHandedDown) {
  put_group("", "cpu memory pids\n");
  EXPECT_THAT(site().to_move, IsEmpty());
  {
    const auto made = Cgroup::make(root_, "20260101-000000-abc", kLimits);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->caps().hierarchy, "v2");
    EXPECT_TRUE(made->caps().memory && made->caps().processes && made->caps().cpu);
    EXPECT_EQ(made->caps().why, "");
    const std::string own = kGroup + "/firestop-20260101-000000-abc";
    EXPECT_EQ(get(own + "/memory.max"), "1073741824");
    EXPECT_EQ(get(own + "/pids.max"), "100");
    EXPECT_EQ(get(own + "/cpu.max"), "50000 100000") << "half a processor";
    ASSERT_TRUE(made->admit(4711));
    EXPECT_EQ(get(own + "/cgroup.procs"), "4711");
  }
  EXPECT_FALSE(exists(root_ + kGroup + "/firestop-20260101-000000-abc")) << "removed at the end";
}

TEST_F(FakeTree, Version2AGroupOfOursAloneIsEmptiedIntoALeaf) {
  const int self = ::getpid();
  put_group(std::to_string(self) + "\n77\n", "");
  put_process(77, self);  // ours, too
  EXPECT_EQ(site().to_move, (std::vector<pid_t>{self, 77}));
  EXPECT_TRUE(site().complete());
  const auto made = Cgroup::make(root_, "r1", kLimits);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->caps().hierarchy, "v2");
  EXPECT_THAT(get(kGroup + "/firestop.self/cgroup.procs"), StartsWith("77")) << "the last that was written";
  EXPECT_EQ(get(kGroup + "/firestop-r1/memory.max"), "1073741824");
}

TEST_F(FakeTree, Version2FromTheLeafTheGroupAboveIsMeant) {
  put_group("", "cpu memory pids\n");
  put("/proc/self/cgroup", "0::/user.slice/app.scope/firestop.self\n");
  EXPECT_TRUE(site().aside);
  EXPECT_EQ(site().memory, root_ + kGroup);
}

TEST_F(FakeTree, Version2WhatStandsInTheWayIsSaidAndNothingIsTouched) {
  struct Row {
    const char* why;
    std::function<void()> make;
  };
  const std::string self = std::to_string(::getpid());
  const Row rows[] = {
      {"processes of others",
       [&] {
         put_group(self + "\n1\n", "");
         put_process(1, 0);
       }},
      {"processes of others", [&] { put_group("0\n", ""); }},  // a process outside our namespace
      {"none of the controllers",
       [&] {
         put_group(self + "\n", "");
         put(kGroup + "/cgroup.controllers", "io\n");
       }},
      {"not delegated",
       [&] {
         put_group(self + "\n", "");
         put("/run/systemd/system/x", "");
       }},
      {"no group that it can see",
       [&] {
         put_group(self + "\n", "");
         put("/proc/self/cgroup", "0::/../escape\n");
       }},
      {"not ours to write",
       [&] {
         put_group(self + "\n", "");
         ASSERT_EQ(::unlink((root_ + kGroup + "/cgroup.subtree_control").c_str()), 0);
       }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    ASSERT_TRUE(remove_tree(root_));
    row.make();
    EXPECT_FALSE(site().usable());
    EXPECT_THAT(site().why, HasSubstr(row.why));
    const auto made = Cgroup::make(root_, "r1", kLimits);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->caps().hierarchy, "none");
    EXPECT_THAT(made->caps().why, HasSubstr(row.why));
    EXPECT_TRUE(made->admit(1)) << "nothing is promised, nothing is broken";
    EXPECT_FALSE(exists(root_ + kGroup + "/firestop-r1"));
    EXPECT_FALSE(exists(root_ + kGroup + "/firestop.self"));
  }
}

TEST_F(FakeTree, Version2WhatSystemdDelegated) {
  put_group(std::to_string(::getpid()) + "\n", "");
  put("/run/systemd/system/x", "");
  if (::setxattr((root_ + kGroup).c_str(), "user.delegate", "1", 1, 0) != 0)
    GTEST_SKIP() << "no extended attributes in /tmp";
  EXPECT_TRUE(site().complete()) << site().why;
  // A group that a user made below a delegated unit is delegated, a unit below it is not.
  for (const auto& [name, delegated] : {std::pair("/mine", true), std::pair("/other.service", false)}) {
    put("/proc/self/cgroup", "0::/user.slice/app.scope" + std::string(name) + "\n");
    for (const char* file : {"/cgroup.procs", "/cgroup.subtree_control"}) put(kGroup + name + file, "");
    put(kGroup + name + "/cgroup.controllers", "memory pids\n");
    EXPECT_EQ(site().usable(), delegated) << name;
    EXPECT_FALSE(site().complete());
    EXPECT_THAT(site().why, HasSubstr(delegated ? "not handed down to us: cpu" : "not delegated"));
  }
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
    EXPECT_THAT(made->caps().why, HasSubstr("pids"));
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
}

}  // namespace
}  // namespace firestop::jail
