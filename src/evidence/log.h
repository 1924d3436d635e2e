// A run's record while it is written: `events.jsonl` (event.h), `checkpoints.jsonl` (signed, checkpoint.h)
// and `content/` (content_store.h) in one directory, 0700. Append-only: each event is written before the next
// is taken, and each checkpoint is written after its events are on the disk (fdatasync), so that whatever
// kills the writer, what is there verifies as a prefix. One writer; not for several threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "codec/json.h"
#include "evidence/content_store.h"
#include "evidence/event.h"
#include "evidence/host_key.h"

namespace firestop::evidence {

struct LogLimits {
  uint64_t events_bytes = 512u << 20;         // of events.jsonl; beyond it "evidence.full"
  uint64_t content_bytes = 1024u << 20;       // of the content store; what is beyond is cut, and said
  uint32_t checkpoint_events = 1000;          // a checkpoint after so many,
  std::chrono::seconds checkpoint_after{10};  // and after so long when there was any event
};

class Log {
 public:
  // `run` is the run's id, `begin` the data of the first event ("record.begin"), to which format, run and key
  // are added. `anchor` gets each checkpoint's line after it was written, on a thread of its own; the first
  // one is waited for, and no checkpoint is made before it has the one before. The directory must not exist.
  // `key` must outlive the log.
  static Result<std::unique_ptr<Log>> create(
      const std::string& directory, const std::string& run, const HostKey& key, codec::JsonObject begin,
      LogLimits limits, std::function<Result<void>(const std::string& line)> anchor = {});
  ~Log();

  // After an error ("evidence.write": disk full, and the like; "evidence.full"; the anchor's, at one of the
  // calls after it) nothing more is taken: the run must end, with ExitStatus::kRecord. Events that the log
  // was given before stay as they are. "evidence.bad_event" (longer than kMostLine, not UTF-8, a number
  // beyond 2^53) is the caller's mistake, and the log goes on.
  Result<void> append(Vantage vantage, std::string_view kind, codec::JsonObject data);
  ContentStore& content();
  // To be called now and then, at least every second: checkpoints by time.
  Result<void> tick();
  // More is unsigned than should be, since the anchor takes its time: whoever feeds the log had better wait.
  bool crowded() const;
  // The terminal record ("record.end", with `data`, counts by kind added), a last checkpoint; waits until the
  // anchor has it, kMostAnchorWait at most. Nothing after it. After an error it is tried all the same, with
  // `complete` false.
  Result<void> close(codec::JsonObject data);
  uint64_t count() const;           // events so far
  uint64_t covered() const;         // of them by checkpoints
  bool anchored() const;            // the anchor has all checkpoints so far; true without one
  const std::string& head() const;  // SHA-256 of the last line

 private:
  Log();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace firestop::evidence
