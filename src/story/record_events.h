// The events of a record one after the other, with what an exporter has to know of earlier ones.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "evidence/event.h"

namespace firestop::story {

// What a process of the guest was when the event came.
struct KnownProcess {
  uint32_t parent = 0;
  std::string file, command_line;
};

struct RecordContext {
  std::string run, name, manifest_digest, version;  // of record.begin
  std::map<uint32_t, KnownProcess> processes;       // that live, by pid

  const KnownProcess* process(const evidence::Event& event) const;  // whose event it is
};

// Each event in order. Ends with the callback's error, at a line that is no event ("evidence.bad_event"), or
// at the end, also of half a record. "evidence.not_found", "evidence.unreadable".
Result<void> for_each_event(
    const std::string& directory,
    const std::function<Result<void>(const evidence::Event&, const RecordContext&)>& take);

int64_t microseconds_of(const std::string& time);  // RFC 3339 as events have it; 0 for what is none

}  // namespace firestop::story
