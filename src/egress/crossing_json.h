// Crossings as JSON: between the egress process and its sandbox, in the record, and as `firestop proxy
// --json` tells them.
#pragma once

#include "base/result.h"
#include "codec/json.h"
#include "egress/crossing.h"

namespace firestop::egress {

const char* to_string(Crossing::Kind kind);

// Empty members are left out. Texts are cut to kMostDetail and made printable: the guest wrote most of them.
codec::Json to_json(const Crossing& crossing);
// The same with "type": "crossing", as write_json() would write it, without the values in between: there is
// one for every request.
void append_told(std::string& out, const Crossing& crossing);
// "egress.bad_crossing" for what to_json() does not make.
Result<Crossing> crossing_of(const codec::Json& json);

}  // namespace firestop::egress
