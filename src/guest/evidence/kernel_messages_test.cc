// The kernel's structures as it sends them, and what is none.
#include <gtest/gtest.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>

#include <string>

#include "guest/evidence/proc_events.h"
#include "guest/evidence/task_costs.h"

namespace firestop::guest {
namespace {

std::string connector(const proc_event& event, uint32_t number = 7, uint32_t index = CN_IDX_PROC) {
  cn_msg head{};
  head.id = {index, CN_VAL_PROC};
  head.seq = number;
  head.len = sizeof event;
  return std::string(bytes_of(head)) + std::string(bytes_of(event));
}

TEST(ProcEvent, ForksThreadsExecutionsAndEndsAreToldApart) {
  proc_event event{};
  event.cpu = 3;
  event.timestamp_ns = 123;
  event.what = proc_event::PROC_EVENT_FORK;
  event.event_data.fork = {10, 9, 20, 20};
  auto got = parse_proc_event(connector(event));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, ProcEvent::Kind::kFork);
  EXPECT_EQ(got->pid, 20u);
  EXPECT_EQ(got->parent, 9u);
  EXPECT_EQ(got->cpu, 3u);
  EXPECT_EQ(got->number, 7u);
  EXPECT_EQ(got->at_ns, 123u);

  event.event_data.fork = {10, 9, 21, 9};
  got = parse_proc_event(connector(event));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, ProcEvent::Kind::kThread);
  EXPECT_EQ(got->pid, 9u);

  event.what = proc_event::PROC_EVENT_EXIT;
  event.event_data.exit = {21, 20, 0x8b, 17, 1, 1};
  got = parse_proc_event(connector(event));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, ProcEvent::Kind::kExit);
  EXPECT_EQ(got->pid, 20u);
  EXPECT_EQ(got->thread, 21u);
  EXPECT_EQ(got->status, 0x8bu);
}

TEST(ProcEvent, WhatIsNoneIsNothing) {
  const proc_event event{};
  const std::string good = connector(event);
  EXPECT_TRUE(parse_proc_event(good));
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse_proc_event(good.substr(0, size)));
  EXPECT_FALSE(parse_proc_event(connector(event, 7, 99)));
}

std::string attribute(uint16_t type, std::string_view value) {
  nlattr head{};
  head.nla_len = static_cast<uint16_t>(sizeof head + value.size());
  head.nla_type = type;
  std::string out(bytes_of(head));
  out += value;
  out.resize(NLA_ALIGN(out.size()));
  return out;
}

std::string costs(std::string_view stats) {
  const std::string pid(4, '\1');
  return std::string(GENL_HDRLEN, '\0') +
         attribute(TASKSTATS_TYPE_AGGR_PID, attribute(TASKSTATS_TYPE_PID, pid) +
                                                attribute(TASKSTATS_TYPE_NULL, {}) +
                                                attribute(TASKSTATS_TYPE_STATS, stats));
}

TEST(TaskCost, IsOfAThreadAndItsProcess) {
  taskstats stats{};
  stats.ac_pid = 21;
  stats.ac_tgid = 20;
  stats.ac_utime = 1000;
  stats.ac_stime = 2000;
  stats.hiwater_rss = 300;
  const auto got = parse_task_cost(costs(bytes_of(stats)));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->process, 20u);
  EXPECT_EQ(got->thread, 21u);
  EXPECT_EQ(got->user_us, 1000u);
  EXPECT_EQ(got->system_us, 2000u);
  EXPECT_EQ(got->max_rss_kib, 300u);
}

TEST(TaskCost, AKernelThatDoesNotSayTheProcessAndWhatIsCutAreNothing) {
  const taskstats stats{};
  EXPECT_FALSE(parse_task_cost(costs(bytes_of(stats).substr(0, offsetof(taskstats, ac_tgid)))));
  const std::string good = costs(bytes_of(stats));
  for (size_t size = 0; size + 4 < good.size(); ++size) EXPECT_FALSE(parse_task_cost(good.substr(0, size)));
  EXPECT_FALSE(parse_task_cost(std::string(GENL_HDRLEN, '\0') + std::string(64, '\0')));
}

}  // namespace
}  // namespace firestop::guest
