// Checkpoints given to something outside, as they are made. Who can write a record's directory and has the
// host's key can cut a record back or write it anew; an anchor that they cannot take back shows it.
//
//   PATH              a file, appended to (O_APPEND, fdatasync); best on another machine, or with chattr +a
//   command:WORDS     given to sh -c with the checkpoint's line on stdin; must end with 0 within 10 s
//   git:REPO#REF      a commit a checkpoint on that ref, its message the line; to be pushed somewhere
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/checkpoint.h"
#include "evidence/host_key.h"

namespace firestop::evidence {

inline constexpr std::chrono::seconds kMostAnchorTime{10};
inline constexpr size_t kMostAnchored = 100000;  // checkpoints of one run that are read back

// Takes a checkpoint's line, without newline; returns when it is kept.
using Anchor = std::function<Result<void>(const std::string& line)>;

// `where` as above. The process ignores SIGPIPE. "evidence.anchor": it is not there, or not understood.
Result<Anchor> open_anchor(const std::string& where);
// What the anchor has of `run`, signed by one of `signers`, in its order; lines that are something else are
// passed over. "evidence.anchor" also for a command, which cannot be asked.
Result<std::vector<Checkpoint>> read_anchor(const std::string& where, const std::string& run,
                                            const std::vector<PublicKey>& signers);

}  // namespace firestop::evidence
