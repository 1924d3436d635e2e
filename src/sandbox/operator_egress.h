// What the operator says of a network beside the manifest: on the command line, or once for all runs in the
// host's configuration (host_config.h).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "egress/mapping.h"
#include "manifest/manifest.h"
#include "sandbox/host_config.h"

namespace firestop::sandbox {

struct OperatorEgress {
  std::vector<egress::Mapping> connect_to;  // one for each name and port
  std::string upstream_ca;                  // PEM, or ""
};

// `connect_to` and `upstream_ca` as on the command line. Its mapping of a name counts before the
// configuration's; certificates are added up. Errors: "usage.connect_to", also for a mapping that no rule
// uses; "usage.upstream_ca"; "config.bad" for certificates that the configuration names and that are none.
Result<OperatorEgress> operator_egress(const manifest::Manifest& manifest, const HostConfig& config,
                                       const std::vector<std::string>& connect_to,
                                       const std::string& upstream_ca);

}  // namespace firestop::sandbox
