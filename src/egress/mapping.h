// Where the operator, never the manifest, wants a name to be dialled.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace firestop::egress {

struct Mapping {
  http::Authority from;
  std::string to;  // "ADDRESS:PORT"
};

// "HOST:PORT=ADDRESS:PORT", the address literal. Error: "mapping.bad", what is wrong with it.
Result<Mapping> parse_mapping(std::string_view text);
// As it would be parsed again.
std::string to_string(const Mapping& mapping);

}  // namespace firestop::egress
