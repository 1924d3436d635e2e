// Is a record what its host wrote, and is all in it? Two answers. Integrity: nothing was changed, taken away,
// added or exchanged since the host's signature. Completeness: what there was to see was seen and kept.
//
// Reads a record that anybody may have written, in constant memory. What it cannot show: a host that lies
// from the start, and records cut back together with their signatures, for which there are anchors
// (anchor.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/checkpoint.h"
#include "evidence/host_key.h"

namespace firestop::evidence {

inline constexpr size_t kMostFindings = 100;  // kept; what is beyond is counted

// One thing that is not as it should be. Codes, stable (docs/evidence.md says each with its cause):
//   of events: "evidence.missing", ".changed", ".out_of_order", ".duplicate", ".bad_event", ".bad_begin",
//     ".after_end", ".truncated", ".rewritten"
//   of signatures: ".unsigned", ".unknown_key", ".other_key", ".bad_signature", ".bad_checkpoint",
//     ".checkpoint_missing", ".checkpoint_order", ".other_run"
//   of contents: ".content_missing", ".content_changed"
//   against an anchor: ".cut_back", ".not_anchored"
//   of a record that is a prefix: ".cut", ".not_ended", ".uncovered"
struct Finding {
  std::string code, message;
  std::optional<uint64_t> seq, last_seq;  // the event that it is about, or the first and last of them
  std::optional<uint64_t> line;           // in events.jsonl, or in checkpoints.jsonl, from 1
  std::optional<uint64_t> checkpoint;     // its number
  std::string digest;                     // of a content
};

enum class Integrity {
  kIntact,  // from record.begin to record.end as signed
  kPrefix,  // what is there is as it was written, but it has no signed end: the run lives or its host died
  kBroken,
};
std::string_view to_string(Integrity integrity);  // "intact", "prefix", "broken"

struct Verification {
  std::string run;  // as the record says
  Integrity integrity = Integrity::kBroken;
  std::vector<Finding> findings;
  uint64_t more_findings = 0;         // beyond kMostFindings
  uint64_t events = 0, contents = 0;  // read
  uint64_t checkpoints = 0;           // with a good signature
  std::string signer;                 // id of the key; empty without a good signature
  std::optional<Checkpoint> trusted;  // the last one up to which nothing is wrong; after it, trust nothing
  uint64_t anchored = 0;              // checkpoints that the anchor has, too

  bool complete = false;
  std::vector<std::string> gaps;  // why it is not
};

struct VerifyOptions {
  std::vector<PublicKey> signers;                 // who may have signed
  std::string run;                                // whose record it should be; empty: whatever it says
  std::optional<std::vector<Checkpoint>> anchor;  // what the anchor has of that run (read_anchor)
};

// "evidence.not_found": no record there; "evidence.unreadable".
Result<std::string> run_of(const std::string& directory);  // as its first event says; "" if it says none
Result<Verification> verify(const std::string& directory, const VerifyOptions& options);

}  // namespace firestop::evidence
