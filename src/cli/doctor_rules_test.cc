#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "cli/doctor_checks.h"

namespace firestop::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class FakeHost : public ::testing::Test {
 protected:
  FakeHost() {
    char name[] = "/tmp/doctor_test.XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~FakeHost() override { (void)remove_tree(root_); }
  void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(make_directories(root_ + parent_path(path), 0755));
    ASSERT_TRUE(write_file_atomic(root_ + path, text, 0644));
  }
  std::string root_;
};

TEST_F(FakeHost, CgroupsV2Delegated) {
  const std::string group = "/sys/fs/cgroup/user.slice/app.scope";
  put("/proc/self/cgroup", "0::/user.slice/app.scope\n");
  put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n");
  put(group + "/cgroup.controllers", "cpu memory pids\n");
  put(group + "/cgroup.type", "domain\n");
  put(group + "/cgroup.procs", std::to_string(::getpid()) + "\n");
  put(group + "/cgroup.subtree_control", "");
  const Check check = check_cgroups(root_);
  EXPECT_EQ(check.health, Health::kOk);
  EXPECT_EQ(check.found, "v2, group /user.slice/app.scope, delegated to us: memory pids cpu");
  EXPECT_EQ(check.mend, "");
  // Not ok: somebody else lives there, so nothing could be handed down; or a controller is missing.
  put(group + "/cgroup.procs", std::to_string(::getpid()) + "\n1\n");
  EXPECT_EQ(check_cgroups(root_).health, Health::kDegraded);
  EXPECT_THAT(check_cgroups(root_).found, HasSubstr("processes of others"));
  put(group + "/cgroup.procs", "");
  put(group + "/cgroup.controllers", "memory pids\n");
  EXPECT_EQ(check_cgroups(root_).health, Health::kDegraded);
  EXPECT_THAT(check_cgroups(root_).found, HasSubstr("not handed down to us: cpu"));
}

TEST_F(FakeHost, CgroupsV2UnderSystemdWithoutDelegation) {
  put("/proc/self/cgroup", "0::/session-1.scope\n");
  put("/run/systemd/system/x", "");
  put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  for (const char* file : {"cgroup.controllers", "cgroup.procs", "cgroup.subtree_control"})
    put(std::string("/sys/fs/cgroup/session-1.scope/") + file, "cpu memory\n");
  const Check check = check_cgroups(root_);
  EXPECT_EQ(check.health, Health::kDegraded);
  EXPECT_THAT(check.found, HasSubstr("systemd has not delegated it"));
  EXPECT_THAT(check.mend, HasSubstr("systemd-run"));
}

TEST_F(FakeHost, CgroupsV1WithAnEmptyV2Mount) {
  put("/sys/fs/cgroup/cgroup.controllers", "\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1");
  put("/sys/fs/cgroup/pids/pids.max", "max");
  EXPECT_EQ(check_cgroups(root_).health, Health::kDegraded) << "processor time is missing";
  EXPECT_EQ(check_cgroups(root_).found, "v1, ours to use: memory pids: not handed down to us: cpu");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(check_cgroups(root_).health, Health::kOk);
  EXPECT_EQ(check_cgroups(root_).found, "v1, ours to use: memory pids cpu");
}

TEST_F(FakeHost, NoCgroups) {
  EXPECT_THAT(check_cgroups(root_).found, StartsWith("none: "));
  put("/sys/fs/cgroup/cgroup.controllers", "\n");
  EXPECT_THAT(check_cgroups(root_).found, StartsWith("v2 without any controller: "));
  EXPECT_THAT(check_cgroups(root_).mend, HasSubstr("v2"));
}

TEST(DoctorRules, SubordinateIds) {
  EXPECT_EQ(check_subordinate_ids("root", 0, "", "", false).health, Health::kOk);
  EXPECT_EQ(check_subordinate_ids("ann", 1000, "bob:1:2\nann:3:4\n", "ann:3:4\n", true).health, Health::kOk);
  EXPECT_EQ(check_subordinate_ids("ann", 1000, "1000:3:4\n", "1000:3:4\n", true).health, Health::kOk);
  struct Row {
    const char *subuid, *subgid;
    bool newuidmap;
    const char *mend, *why;
  };
  const Row rows[] = {{"", "", true, "usermod", "no range at all"},
                      {"ann:3:4\n", "", true, "usermod", "no range of groups"},
                      {"joann:3:4\n", "joann:3:4\n", true, "usermod", "somebody with a longer name"},
                      {"ann:3:4\n", "ann:3:4\n", false, "install uidmap", "no helper"}};
  for (const Row& row : rows) {
    const Check check = check_subordinate_ids("ann", 1000, row.subuid, row.subgid, row.newuidmap);
    EXPECT_EQ(check.health, Health::kDegraded) << row.why;
    EXPECT_THAT(check.mend, HasSubstr(row.mend)) << row.why;
  }
}

TEST(DoctorRules, Memory) {
  EXPECT_EQ(check_memory("MemTotal: 8000000 kB\nMemAvailable:    4194304 kB\n").health, Health::kOk);
  EXPECT_THAT(check_memory("MemTotal: 8000000 kB\nMemAvailable:    4194304 kB\n").found, HasSubstr("4GiB"));
  EXPECT_EQ(check_memory("MemAvailable: 500000 kB\n").health, Health::kDegraded);
  EXPECT_EQ(check_memory("").health, Health::kDegraded);
}

TEST(DoctorRules, Disk) {
  constexpr uint64_t kGiB = 1u << 30;
  EXPECT_EQ(check_disk("state_disk", "disk", "/s", 10 * kGiB, true).health, Health::kOk);
  EXPECT_THAT(check_disk("state_disk", "disk", "/s", 10 * kGiB, true).found, HasSubstr("10GiB"));
  EXPECT_EQ(check_disk("state_disk", "disk", "/s", kGiB, true).health, Health::kDegraded);
  EXPECT_EQ(check_disk("state_disk", "disk", "/s", 1 << 20, true).health, Health::kMissing);
  const Check locked = check_disk("cache_disk", "disk", "/c", 10 * kGiB, false);
  EXPECT_EQ(locked.health, Health::kMissing);
  EXPECT_THAT(locked.mend, HasSubstr("XDG_CACHE_HOME"));
}

TEST(DoctorRules, QemuVersions) {
  const auto health = [](const char* text) { return check_qemu_version("/usr/bin/qemu", text).health; };
  EXPECT_EQ(health("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"), Health::kOk);
  EXPECT_EQ(health("QEMU emulator version 10.0.0"), Health::kOk);
  EXPECT_EQ(health("QEMU emulator version 4.2.1"), Health::kDegraded);
  EXPECT_EQ(health(""), Health::kMissing);
  EXPECT_EQ(health("version x"), Health::kMissing);
}

}  // namespace
}  // namespace firestop::cli
