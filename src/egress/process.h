// The egress process: the one way out of a sandbox, one process a sandbox, so that it holds this one's
// credentials and nothing of another. It gets its sockets as descriptors (link.h) and the policy once; then
// it locks itself down: no file but those that the resolver reads, no program, no other process, no
// privilege, no core file. Nothing of it is shared with the sandbox's other processes but the link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "codec/json.h"

namespace firestop::egress {

struct ProcessConfig {
  // Where the operator, never the manifest, wants a name to be dialled.
  struct ConnectTo {
    std::string host;  // canonical name
    uint16_t port = 0;
    std::string to;  // "ADDRESS:PORT"
    bool operator==(const ConnectTo&) const = default;
  };
  std::string manifest_file;  // for messages, and for what lies beside it
  std::string manifest_text;  // the whole policy, as it was checked and signed
  std::vector<ConnectTo> connect_to;
  std::string upstream_ca;  // certificates that origins may have besides the host's, PEM
  codec::Json placeholders = codec::JsonArray{};  // credentials/placeholder.h
};
codec::Json to_json(const ProcessConfig& config);
Result<ProcessConfig> config_of(const codec::Json& json);  // "egress.config"

// Runs until the sandbox closes its end of the link; the exit status. `firestop __egress` calls it and
// nothing else.
int process_main();

}  // namespace firestop::egress
