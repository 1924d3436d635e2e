// Witness and record: an agent's own account of a run, held against what was seen from outside.
// docs/reconcile.md has every rule with its reason.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "reconcile/claim_match.h"
#include "reconcile/trace.h"
#include "story/story.h"

namespace firestop::reconcile {

// A program or script that ran and is not from the image.
struct RanCode {
  uint64_t seq = 0;
  std::string how, path, interpreter, digest, note;
  uint64_t size = 0;
};

struct Finding {
  enum class Kind { kNeverMentioned, kNeverRan, kOtherResult };
  Kind kind{};
  std::string what;               // a command line or a path
  std::string why;                // one sentence
  uint64_t seq = 0;               // the first event of the record that shows it; 0 of kNeverRan
  size_t process = story::kNone;  // index into Story::processes
  uint64_t line = 0;              // of the trace; 0 where the trace has nothing of it
  std::string claimed, recorded;  // of kOtherResult
  std::vector<RanCode> code;      // of kNeverMentioned, kMostCode at most
  uint64_t more_code = 0;         // that is left out of `code`
  uint64_t times = 1;
};
inline constexpr size_t kMostCode = 100;

struct Account {
  std::vector<Finding> findings;  // never mentioned, never ran, other result; each in order
  uint64_t claims = 0, ran = 0, unseen = 0, unsure = 0;
  uint64_t expected = 0;           // processes and code that the options' `expected` covers
  std::vector<std::string> notes;  // what makes the comparison weaker: lost events, lines that were not read
};

struct ReconcileOptions {
  // What the agent's harness runs by itself, as patterns of fnmatch(3): command lines of programs of the
  // image
  // ("git status*"), and paths of its code ("/home/*/.claude/shell-snapshots/*").
  std::vector<std::string> expected;
  // The bytes of a script by its digest, to see whether a claim shows them; an empty text for none.
  std::function<std::string(const std::string& digest)> content;
};

Account reconcile(const story::Story& story, const Trace& trace, const ReconcileOptions& options);

const char* to_string(Finding::Kind kind);  // "never_mentioned", "never_ran", "other_result"
codec::Json to_json(const Account& account, const story::Story& story, const Trace& trace);
// For people. `paint` may colour a heading.
std::string to_text(const Account& account, const story::Story& story, const Trace& trace,
                    const std::function<std::string(std::string_view)>& paint);

}  // namespace firestop::reconcile
