#include "sandbox/caps.h"

#include <array>
#include <cstdio>
#include <string_view>

#include "base/units.h"
#include "egress/doors.h"
#include "vmm/vmm.h"

namespace firestop::sandbox {
namespace {

using manifest::Manifest;

constexpr std::pair<std::string_view, std::string_view> kKeepers[] = {
    {"timer", "a timer of the host"},
    {"host_count", "counting on the host"},
    {"link", "the host's end of the network link (nft)"},
    {"egress", "the egress process"},
    {"disk_size", "the size of the disk"},
    {"qemu", "QEMU's virtual hardware"},
    {"qemu_throttle", "QEMU's throttling"},
    {"guest_cgroup", "a control group in the guest"},
    {"guest_rlimit", "a process limit in the guest"},
    {"guest_count", "counting in the guest"},
    {"host_rlimit", "process limits of QEMU"},
    {"host_cgroup_v1", "a control group (v1) around QEMU"},
    {"host_cgroup_v2", "a control group (v2) around QEMU"},
};

// The group of the host that keeps a cap as well, where there is one.
enum class Group : int { kNone, kMemory, kProcesses, kCpu };

struct Row {
  std::string_view cap;
  std::array<std::string_view, 3> by;
  Group group;
  std::string (*limit)(const Manifest&);
};

std::string decimal(double value) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%g", value);
  return text;
}

bool has_memory(const Manifest& m) {
  return m.capabilities.contains(manifest::Capability::kMemory);
}
bool has_network(const Manifest& m) {
  return !m.egress.empty();
}
bool always(const Manifest&) {
  return true;
}

// What only some runs have is capped in those.
bool (*condition(std::string_view cap))(const Manifest&) {
  if (cap.starts_with("memory_")) return has_memory;
  return cap.starts_with("network.") ? has_network : always;
}

// Empty: a cap that the manifest need not set, and did not.
const Row kRows[] = {
    {"rating", {"timer"}, Group::kNone, [](const Manifest& m) { return format_duration(m.rating); }},
    {"cpus", {"qemu", "guest_cgroup"}, Group::kCpu, [](const Manifest& m) { return decimal(m.limits.cpus); }},
    {"memory",
     {"qemu", "host_rlimit", "guest_cgroup"},
     Group::kMemory,
     [](const Manifest& m) { return format_bytes(m.limits.memory); }},
    {"disk",
     {"disk_size", "host_rlimit"},
     Group::kNone,
     [](const Manifest& m) { return format_bytes(m.limits.disk); }},
    {"io",
     {"qemu_throttle"},
     Group::kNone,
     [](const Manifest& m) { return m.limits.io ? format_bytes(*m.limits.io) + "/s" : std::string(); }},
    {"processes",
     {"guest_cgroup", "host_rlimit"},
     Group::kProcesses,
     [](const Manifest& m) { return std::to_string(m.limits.processes); }},
    {"open_files",
     {"guest_rlimit", "host_rlimit"},
     Group::kNone,
     [](const Manifest& m) { return std::to_string(m.limits.open_files); }},
    {"output", {"host_count"}, Group::kNone, [](const Manifest& m) { return format_bytes(m.limits.output); }},
    {"result",
     {"host_count", "host_rlimit"},
     Group::kNone,
     [](const Manifest& m) { return format_bytes(m.limits.result); }},
    {"result_files",
     {"host_count"},
     Group::kNone,
     [](const Manifest& m) { return std::to_string(m.limits.result_files); }},
    {"memory_directory",
     {"host_count", "host_rlimit"},
     Group::kNone,
     [](const Manifest& m) { return format_bytes(m.limits.memory_directory); }},
    {"memory_files",
     {"host_count"},
     Group::kNone,
     [](const Manifest& m) { return std::to_string(m.limits.memory_files); }},
    {"network.bytes",
     {"link"},
     Group::kNone,
     [](const Manifest& m) { return m.limits.network.bytes ? format_bytes(*m.limits.network.bytes) : ""; }},
    {"network.rate",
     {"link"},
     Group::kNone,
     [](const Manifest& m) {
       return m.limits.network.rate ? format_bytes(*m.limits.network.rate) + "/s" : "";
     }},
    {"network.connections",
     {"egress"},
     Group::kNone,
     [](const Manifest& m) {
       return std::to_string(m.limits.network.connections.value_or(egress::Doors::kConnectionsUnlessSaid));
     }},
    {"console",
     {"host_count"},
     Group::kNone,
     [](const Manifest&) { return format_bytes(vmm::kConsoleTail); }},
};

bool holds(const jail::CgroupCaps& groups, Group group) {
  switch (group) {
    case Group::kNone:
      return false;
    case Group::kMemory:
      return groups.memory;
    case Group::kProcesses:
      return groups.processes;
    case Group::kCpu:
      return groups.cpu;
  }
  return false;
}

}  // namespace

std::vector<KeptCap> kept_caps(const jail::CgroupCaps& groups, const Manifest* manifest) {
  std::vector<KeptCap> caps;
  for (const Row& row : kRows) {
    if (manifest && !condition(row.cap)(*manifest)) continue;
    KeptCap cap{std::string(row.cap), manifest ? row.limit(*manifest) : std::string(), {}};
    const bool uncapped = manifest && cap.limit.empty();
    for (const auto& keeper : row.by)
      if (!keeper.empty() && !uncapped) cap.by.emplace_back(keeper);
    if (holds(groups, row.group)) cap.by.push_back("host_cgroup_" + groups.hierarchy);
    caps.push_back(std::move(cap));
  }
  return caps;
}

std::string cap_behind(std::string_view reason) {
  static constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
      {"rating.reached", "rating"},     {"cap.output", "output"},       {"cap.memory", "memory"},
      {"cap.network", "network.bytes"}, {"result.too_large", "result"},
  };
  for (const auto& [each, cap] : kReasons)
    if (each == reason) return std::string(cap);
  return "";
}

std::string describe_keeper(const std::string& keeper) {
  for (const auto& [name, text] : kKeepers)
    if (name == keeper) return std::string(text);
  return keeper;
}

}  // namespace firestop::sandbox
