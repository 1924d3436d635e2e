// One event of a run's record, as a line of events.jsonl: canonical JSON (RFC 8785) of
//
//   {"data": {...}, "kind": "process.exec", "mono_us": 1234, "prev": "<hex>", "seq": 7,
//    "time": "2026-11-29T20:10:11.123456Z", "vantage": "guest"}
//
// `seq` counts up from 0 without a gap; `prev` is the SHA-256 of the line before, without its newline (of the
// first: 64 zeros); `time` is the host's wall clock, `mono_us` its monotonic clock since the record began.
// `vantage` says who saw it: "host" (Firestop itself) or "guest" (the collectors in the machine, whose words
// are claims once the guest is taken over). docs/evidence.md and schema/event.schema.json have the kinds and
// their data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/json.h"

namespace firestop::evidence {

enum class Vantage { kHost, kGuest };

struct Event {
  uint64_t seq = 0;
  std::string time;
  int64_t mono_us = 0;
  Vantage vantage{};
  std::string kind;
  codec::Json data;  // an object
  std::string prev;
};

inline constexpr size_t kMostLine = 256u << 10;  // bytes of a line; no event is longer

Result<std::string> to_line(const Event& event);   // without newline
Result<Event> parse_event(std::string_view line);  // "evidence.bad_event", and what is wrong
// Bytes of the guest's as a JSON value: a string where they are UTF-8 without control characters other than
// tab and newline, else {"base64": "..."}. bytes_of() is the way back; what is neither gives an empty string.
codec::Json json_of_bytes(std::string_view bytes);
std::string bytes_of(const codec::Json& value);

}  // namespace firestop::evidence
