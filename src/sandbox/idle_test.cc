#include "sandbox/idle.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace firestop::sandbox {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

class IdleTest : public ::testing::Test {
 protected:
  std::optional<microseconds> used = microseconds(0);
  IdleWatch::Clock::time_point now;
  IdleWatch watch{seconds(10), [this] { return used; }, now};

  // The seconds after which it is over, at most 30, when each second uses `each`.
  int ends_after(std::optional<microseconds> each) {
    for (int second = 1; second <= 30; ++second) {
      now += seconds(1);
      used = each ? std::optional(used.value_or(microseconds(0)) + *each) : std::nullopt;
      if (watch.over(now)) return second;
    }
    return -1;
  }
};

TEST_F(IdleTest, AMachineThatWaitsIsOverAtItsLimit) {
  EXPECT_EQ(ends_after(microseconds(20'000)), 10);
}

TEST_F(IdleTest, AMachineThatComputesIsNot) {
  EXPECT_EQ(ends_after(microseconds(200'000)), -1);
  EXPECT_EQ(ends_after(microseconds(0)), 10) << "counted from its last work";
}

TEST_F(IdleTest, WhatHappensBeginsItAnew) {
  now += seconds(9);
  watch.happened(now);
  EXPECT_EQ(ends_after(microseconds(0)), 10);
}

TEST_F(IdleTest, WhatCannotBeToldCountsAsWork) {
  EXPECT_EQ(ends_after(std::nullopt), -1);
}

TEST(ProcessorTime, CountsWhatAProcessUses) {
  const auto before = processor_time(::getpid());
  ASSERT_TRUE(before);
  volatile uint64_t sum = 0;
  auto after = before;
  while (after && *after - *before < microseconds(50'000)) {
    for (uint64_t i = 0; i < 10'000'000; ++i) sum = sum + i;
    after = processor_time(::getpid());
  }
  EXPECT_TRUE(after);
  EXPECT_FALSE(processor_time(0));
}

}  // namespace
}  // namespace firestop::sandbox
