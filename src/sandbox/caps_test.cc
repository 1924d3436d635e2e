#include "sandbox/caps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firestop::sandbox {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

const KeptCap& find(const std::vector<KeptCap>& caps, const std::string& name) {
  for (const auto& cap : caps)
    if (cap.cap == name) return cap;
  static const KeptCap kNone;
  return kNone;
}

TEST(KeptCaps, EveryCapHasAKeeperAndKeepersHaveWords) {
  const auto caps = kept_caps({}, nullptr);
  EXPECT_EQ(caps.size(), 16u);
  for (const auto& cap : caps) {
    EXPECT_THAT(cap.by, Not(IsEmpty())) << cap.cap;
    EXPECT_EQ(cap.limit, "") << cap.cap;
    for (const auto& keeper : cap.by) EXPECT_NE(describe_keeper(keeper), keeper);
  }
}

TEST(KeptCaps, TheHostsGroupIsNamedForWhatItHoldsOnly) {
  jail::CgroupCaps groups;
  groups.memory = groups.cpu = true;
  groups.hierarchy = "v2";
  const auto caps = kept_caps(groups, nullptr);
  EXPECT_THAT(find(caps, "memory").by, Contains("host_cgroup_v2"));
  EXPECT_THAT(find(caps, "cpus").by, ElementsAre("qemu", "guest_cgroup", "host_cgroup_v2"));
  EXPECT_THAT(find(caps, "processes").by, Not(Contains("host_cgroup_v2")));
  EXPECT_THAT(find(caps, "disk").by, Not(Contains("host_cgroup_v2")));
}

TEST(KeptCaps, LimitsAreAsTheManifestSaysThem) {
  manifest::Manifest manifest;
  manifest.limits.cpus = 0.5;
  manifest.limits.memory = 256u << 20;
  manifest.rating = std::chrono::minutes(3);
  auto caps = kept_caps({}, &manifest);
  EXPECT_EQ(find(caps, "cpus").limit, "0.5");
  EXPECT_EQ(find(caps, "memory").limit, "256MiB");
  EXPECT_EQ(find(caps, "rating").limit, "3m");
  EXPECT_EQ(find(caps, "io").limit, "");
  EXPECT_THAT(find(caps, "io").by, IsEmpty()) << "no rate, no keeper: not said to be capped";
  manifest.limits.io = 1u << 20;
  caps = kept_caps({}, &manifest);
  EXPECT_EQ(find(caps, "io").limit, "1MiB/s");
  EXPECT_THAT(find(caps, "io").by, ElementsAre("qemu_throttle"));
}

TEST(KeptCaps, OfNetworkAndMemoryWhereThereAreAny) {
  manifest::Manifest manifest;
  const auto without = kept_caps({}, &manifest);
  EXPECT_EQ(find(without, "network.connections").cap, "");
  EXPECT_EQ(find(without, "memory_files").cap, "");
  manifest.egress.emplace_back();
  manifest.capabilities.insert(manifest::Capability::kMemory);
  manifest.limits.network.bytes = 1u << 20;
  const auto caps = kept_caps({}, &manifest);
  EXPECT_EQ(find(caps, "network.bytes").limit, "1MiB");
  EXPECT_THAT(find(caps, "network.bytes").by, ElementsAre("link"));
  EXPECT_THAT(find(caps, "network.rate").by, IsEmpty());
  EXPECT_EQ(find(caps, "network.connections").limit, "1024");
  EXPECT_EQ(find(caps, "memory_files").limit, "1000");
}

TEST(KeptCaps, AreNamedByTheReasonsThatTheyEndRunsWith) {
  manifest::Manifest manifest;
  manifest.egress.emplace_back();
  const auto caps = kept_caps({}, &manifest);
  for (const char* reason :
       {"rating.reached", "cap.output", "cap.memory", "cap.network", "result.too_large"}) {
    EXPECT_NE(cap_behind(reason), "") << reason;
    EXPECT_EQ(find(caps, cap_behind(reason)).cap, cap_behind(reason)) << "what was hit is what is kept";
  }
  for (const char* other : {"", "guest.failed", "cap.", "idle.reached"}) EXPECT_EQ(cap_behind(other), "");
}

}  // namespace
}  // namespace firestop::sandbox
