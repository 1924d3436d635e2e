// Which part of the system keeps which cap, on this host: one table, for the run's record and for
// `firestop doctor`. Where the host hands down no control group, fewer parts keep some caps; none is kept by
// nobody, but for those that the manifest may leave out: `io`, `network.bytes`, `network.rate`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jail/cgroup.h"
#include "manifest/manifest.h"

namespace firestop::sandbox {

struct KeptCap {
  std::string cap;              // the field of `limits`, or "rating", "console"
  std::string limit;            // as a manifest would say it; empty: none, or not asked for
  std::vector<std::string> by;  // keepers' stable names, see describe_keeper(); the strongest first

  bool operator==(const KeptCap&) const = default;
};

// `manifest` null: of any run here. `groups` is what the host gives QEMU.
std::vector<KeptCap> kept_caps(const jail::CgroupCaps& groups, const manifest::Manifest* manifest);

// The cap that a run's reason says was hit ("cap.network": "network.bytes"), or "" for one that is none.
std::string cap_behind(std::string_view reason);

// A keeper for people: "host_cgroup_v2" is "a control group (v2) around QEMU". Its name, if it is unknown.
std::string describe_keeper(const std::string& keeper);

}  // namespace firestop::sandbox
