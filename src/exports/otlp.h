// A record as OpenTelemetry logs, in OTLP/HTTP with JSON (opentelemetry-proto 1.x): each event a log record,
// in batches, sent by whoever can post. Events that a receiver did not take are counted, never dropped
// silently.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "story/record_events.h"

namespace firestop::exports {

inline constexpr size_t kMostBatchEvents = 500;
inline constexpr size_t kMostBatchBytes = 1u << 20;   // of events in it
inline constexpr int kMostAttempts = 6;               // of a batch
inline constexpr std::chrono::seconds kMostWait{30};  // between two of them

struct OtlpAnswer {
  int status = 0;
  std::string body;
  std::optional<std::chrono::seconds> retry_after;
};

struct OtlpTransport {
  std::function<Result<OtlpAnswer>(const std::string& json)> post;
  std::function<void(std::chrono::milliseconds)> sleep;
};

struct OtlpResult {
  uint64_t sent = 0;      // events that the receiver took
  uint64_t rejected = 0;  // that it said it did not take, in an answer of 200
  std::string rejection;  // its words on that
  uint64_t batches = 0, retries = 0;
};

// "otlp.refused": the receiver refuses a batch; "otlp.unreachable": no answer, or none but "try again", in
// kMostAttempts. Both say how many events were sent before.
Result<OtlpResult> export_otlp(const std::string& directory, const OtlpTransport& transport);

// One ExportLogsServiceRequest of these log records, which are JSON already.
codec::Json otlp_request(codec::JsonArray records, const story::RecordContext& context);
codec::Json otlp_record(const evidence::Event& event, const story::RecordContext& context);

// The logs' address of an endpoint: OTLP's own path "/v1/logs" is added where there is none.
Result<std::string> otlp_address(const std::string& endpoint);

}  // namespace firestop::exports
