// Which process an agent's claim speaks of. docs/reconcile.md has the rules and their reasons.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reconcile/trace.h"
#include "story/shell_words.h"
#include "story/story.h"

namespace firestop::reconcile {

// A claim as it is compared: the text that a shell read, or the arguments of one program.
struct ReadClaim {
  std::string text;                     // what a shell was given; empty for arguments
  story::ShellText shell;               // of `text`
  std::vector<story::ShellWord> words;  // all words that the claim shows, those within `sh -c` included
};

struct Matches {
  enum class State {
    kNoCommand,
    kRan,     // `process` is it, or does it in several
    kPartly,  // some of it ran; `missing` did not
    kNot,
    kUnseen,  // a shell does it without a process, so nobody can tell
  };
  struct Match {
    State state = State::kNoCommand;
    std::vector<size_t> processes;  // kRan, kPartly: in order; one where the shell itself was seen
    bool whole = false;             // the one process is the whole claim, so that its status is the claim's
    std::string missing;
  };
  std::vector<ReadClaim> read;   // by claim
  std::vector<Match> claims;     // by claim
  std::vector<size_t> claim_of;  // by process: that it is, or that it ran below; else kNone
  std::vector<bool> is_match;    // by process
};

Matches match_claims(const story::Story& story, const Trace& trace);

}  // namespace firestop::reconcile
