// The guard's part of what the egress process is told before the guest starts, as JSON: what is written is
// read back as itself.
#pragma once

#include "base/result.h"
#include "codec/json.h"
#include "egress/guard_impl.h"

namespace firestop::egress {

// All but the vault, which is a socket.
codec::Json to_json(const GuardParts& parts);
// "egress.bad_config": missing members, other types. From our own process, so it is not explained to people.
Result<GuardParts> guard_parts_from_json(const codec::Json& json);

}  // namespace firestop::egress
