#include "evidence/checkpoint.h"

#include "codec/json.h"

namespace firestop::evidence {
namespace {

std::string payload_of(const Checkpoint& c) {
  // Nothing in it that canonical JSON refuses but a run's id, which is ours.
  return codec::write_canonical_json(codec::JsonObject{{"count", c.count},
                                                       {"final", c.final},
                                                       {"head", c.head},
                                                       {"mono_us", c.mono_us},
                                                       {"number", c.number},
                                                       {"run", c.run},
                                                       {"time", c.time}})
      .value_or("");
}

}  // namespace

std::string sign_checkpoint(const HostKey& key, const Checkpoint& checkpoint) {
  return sign_envelope(key, kCheckpointType, payload_of(checkpoint));
}

Result<Checkpoint> checkpoint_of(const Envelope& envelope) {
  const auto bad = [](const char* what) { return fail("evidence.bad_checkpoint", what); };
  if (envelope.type != kCheckpointType) return bad("its payloadType is another one");
  const auto json = codec::parse_json(envelope.payload);
  if (!json) return bad("its payload is no JSON");
  Checkpoint out{.run = json->string_or("run", ""),
                 .number = static_cast<uint64_t>(json->int_or("number", -1)),
                 .count = static_cast<uint64_t>(json->int_or("count", 0)),
                 .head = json->string_or("head", ""),
                 .time = json->string_or("time", ""),
                 .mono_us = json->int_or("mono_us", 0),
                 .final = json->bool_or("final", false)};
  if (out.count == 0 || payload_of(out) != envelope.payload)
    return bad("its payload is not the canonical JSON of a checkpoint");
  return out;
}

}  // namespace firestop::evidence
