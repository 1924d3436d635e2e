// Crossings as JSON: between the egress process and its sandbox, and as lines of network.jsonl.
#pragma once

#include "base/result.h"
#include "codec/json.h"
#include "egress/crossing.h"

namespace firestop::egress {

const char* to_string(Crossing::Kind kind);

// Empty members are left out. Texts are cut to kMostDetail and made printable: the guest wrote most of them.
codec::Json to_json(const Crossing& crossing);
// "egress.bad_crossing" for what to_json() does not make.
Result<Crossing> crossing_of(const codec::Json& json);

}  // namespace firestop::egress
