// A line of checkpoints.jsonl: the host's signature over how far a record had come. A DSSE envelope (dsse.h)
// of canonical JSON
//
//   {"count": 1000, "final": false, "head": "<hex>", "mono_us": 1234, "number": 1, "run": "20261129-...",
//    "time": "2026-11-29T20:10:11.123456Z"}
//
// `number` counts up from 0, so that one that is taken away is missed. `head` is the SHA-256 of the line of
// event number `count`-1, which hashes all before it: one signature covers the whole prefix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "evidence/dsse.h"
#include "evidence/host_key.h"

namespace firestop::evidence {

inline constexpr std::string_view kCheckpointType = "application/vnd.firestop.checkpoint+json";
inline constexpr size_t kMostCheckpoint = 16u << 10;  // bytes of a line

struct Checkpoint {
  std::string run;
  uint64_t number = 0;
  uint64_t count = 0;  // events covered, at least 1
  std::string head;
  std::string time;
  int64_t mono_us = 0;
  bool final = false;  // after record.end

  bool operator==(const Checkpoint&) const = default;
};

std::string sign_checkpoint(const HostKey& key, const Checkpoint& checkpoint);  // without newline
// What an envelope says, whoever signed it. "evidence.bad_checkpoint".
Result<Checkpoint> checkpoint_of(const Envelope& envelope);

}  // namespace firestop::evidence
