// The egress process: the one way out of a sandbox, one process a sandbox, so that it holds this one's
// credentials and nothing of another. It gets its sockets as descriptors (link.h) and the policy once; then
// it locks itself down: no file but those that the resolver reads, no program, no other process, no
// privilege, no core file. Nothing of it is shared with the sandbox's other processes but the link.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "codec/json.h"
#include "egress/doors.h"
#include "egress/guard_impl.h"

namespace firestop::egress {

struct ProcessConfig {
  GuardParts guard;         // the whole policy, as it was checked and signed; without the vault
  std::string upstream_ca;  // certificates that origins may have besides those that the host trusts, PEM
  uint32_t connections = Doors::kConnectionsUnlessSaid;
  bool has_sources =
      false;  // kSourcesFd is a socket to who has the credentials (credentials/source_process.h)
};
codec::Json to_json(const ProcessConfig& config);
Result<ProcessConfig> config_of(const codec::Json& json);  // "egress.config"

// Runs until the sandbox closes its end of the link; the exit status. `firestop __egress` calls it and
// nothing else.
int process_main();

}  // namespace firestop::egress
