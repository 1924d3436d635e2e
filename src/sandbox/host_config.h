// What the operator of this host decided once for all runs: $XDG_CONFIG_HOME/firestop/config.yaml.
//
//   require_signature: true            # refuse every manifest that is not signed by one of
//   allowed_signers: allowed_signers   # a path; relative to the file's folder
//   connect_to: ["api.example.com:443=10.1.2.3:8443"]   # where names are dialled, as --connect-to
//   upstream_ca: company.pem           # certificates that origins may have besides the host's
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/mapping.h"

namespace firestop::sandbox {

struct HostConfig {
  bool require_signature = false;
  std::string allowed_signers;  // absolute; "" means none is named
  std::vector<egress::Mapping> connect_to;
  std::string upstream_ca;  // absolute, or ""
};

// Strict, as manifests are: unknown and repeated keys, other types and a second document are errors with
// file, line and column ("config.bad"). `file` decides what relative paths mean.
Result<HostConfig> parse_host_config(std::string_view text, const std::string& file);
// The defaults if there is no file; "config.unreadable" if it cannot be read: nobody's rule is passed over.
Result<HostConfig> load_host_config();

}  // namespace firestop::sandbox
