#include "guest/evidence/task_costs.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

struct Attribute {
  uint16_t type = 0;
  std::string_view value;
};

// Takes the first attribute off `rest`.
std::optional<Attribute> take_attribute(std::string_view& rest) {
  nlattr head{};
  if (rest.size() < sizeof head) return std::nullopt;
  ::memcpy(&head, rest.data(), sizeof head);
  if (head.nla_len < sizeof head || head.nla_len > rest.size()) return std::nullopt;
  const Attribute out{static_cast<uint16_t>(head.nla_type & NLA_TYPE_MASK),
                      rest.substr(sizeof head, head.nla_len - sizeof head)};
  rest.remove_prefix(std::min<size_t>(rest.size(), NLA_ALIGN(head.nla_len)));
  return out;
}

std::optional<Attribute> find_attribute(std::string_view rest, uint16_t type) {
  while (const auto attribute = take_attribute(rest))
    if (attribute->type == type) return attribute;
  return std::nullopt;
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

std::string generic(uint8_t command, std::string_view attributes) {
  genlmsghdr head{};
  head.cmd = command;
  head.version = 1;
  return std::string(bytes_of(head)) + std::string(attributes);
}

}  // namespace

std::optional<TaskCost> parse_task_cost(std::string_view payload) {
  if (payload.size() < GENL_HDRLEN) return std::nullopt;
  const auto thread = find_attribute(payload.substr(GENL_HDRLEN), TASKSTATS_TYPE_AGGR_PID);
  if (!thread) return std::nullopt;
  const auto bytes = find_attribute(thread->value, TASKSTATS_TYPE_STATS);
  constexpr size_t kWithProcess = offsetof(taskstats, ac_tgid) + sizeof(taskstats::ac_tgid);  // version 12
  if (!bytes || bytes->value.size() < kWithProcess) return std::nullopt;
  taskstats stats{};
  ::memcpy(&stats, bytes->value.data(), std::min(sizeof stats, bytes->value.size()));
  return TaskCost{stats.ac_tgid, stats.ac_pid, stats.ac_utime, stats.ac_stime, stats.hiwater_rss};
}

Result<TaskCosts> TaskCosts::open() {
  TaskCosts costs;
  TRY_ASSIGN(costs.link_, Netlink::open(NETLINK_GENERIC, 0));
  const std::string name(TASKSTATS_GENL_NAME, sizeof TASKSTATS_GENL_NAME);
  TRY_ASSIGN(
      const std::string answer,
      costs.link_.query(GENL_ID_CTRL, generic(CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, name))));
  if (answer.size() < GENL_HDRLEN) return fail("evidence.costs", "the kernel has no taskstats");
  const auto id = find_attribute(std::string_view(answer).substr(GENL_HDRLEN), CTRL_ATTR_FAMILY_ID);
  uint16_t family = 0;
  if (!id || id->value.size() < sizeof family) return fail("evidence.costs", "the kernel has no taskstats");
  ::memcpy(&family, id->value.data(), sizeof family);
  TRY_ASSIGN(std::string processors, read_kernel_file("/sys/devices/system/cpu/possible"));
  processors += '\0';
  TRY(costs.link_.request(
      family, generic(TASKSTATS_CMD_GET, attribute(TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, processors))));
  return costs;
}

std::optional<TaskCost> TaskCosts::next() {
  uint16_t type = 0;
  std::string payload;
  while (true) {
    const auto got = link_.receive(type, payload);
    if (got == Netlink::Got::kNothing) return std::nullopt;
    if (got == Netlink::Got::kOverflow) continue;  // ends without costs are counted
    if (auto cost = parse_task_cost(payload)) return cost;
  }
}

}  // namespace firestop::guest
