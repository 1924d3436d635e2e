// An agent's own trace, as claims: which commands it says that it ran, with which status, and which files it
// says that it wrote. One reader a format. A trace is hostile input: it is read a line at a time, within
// bounds, and what cannot be read is counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::reconcile {

inline constexpr uint64_t kMostTrace = 256u << 20;         // bytes of a trace
inline constexpr size_t kMostTraceLine = 32u << 20;        // bytes of a line; longer ones are not read
inline constexpr uint64_t kMostTraceDocument = 64u << 20;  // bytes of one that is a single JSON document
inline constexpr size_t kMostClaims = 200000;              // of a trace
inline constexpr uint64_t kMostClaimedBytes = 128u << 20;  // of all commands in it

enum class TraceFormat { kAuto, kClaudeCode, kCodex, kOpenAiAgents, kOtel, kJsonl };

std::optional<TraceFormat> trace_format(std::string_view name);  // "auto", "claude-code", ...
const char* to_string(TraceFormat format);

struct Claim {
  enum class Kind { kCommand, kWrite, kDelete, kCode };  // kCode: text that a tool of the agent's ran
  Kind kind{};
  uint64_t line = 0;              // of the trace; from 1
  std::string tool;               // as the trace names it
  std::string command;            // as a shell reads it; or
  std::vector<std::string> argv;  // as arguments
  std::string cwd;                // "" where the trace does not say
  std::optional<int> exit;        // that it had, as the trace has it
  std::string path;               // of kWrite, kDelete
  std::string digest;             // SHA-256 of the bytes of kWrite and kCode, where the trace has them whole
  bool sure = true;               // the trace says that it was done; not: refused, or without an answer
};

struct Trace {
  TraceFormat format{};
  std::vector<Claim> claims;  // in the order of the calls
  uint64_t entries = 0;       // that were read
  uint64_t unread = 0;        // lines that are no JSON, too deep or too long
  std::string note;           // where reading ended early, and why
};

// "trace.unreadable", "trace.too_large", "trace.unknown": nothing in it is a trace of that format, or, with
// kAuto, of any.
Result<Trace> read_trace(const std::string& path, TraceFormat format);
Result<Trace> read_trace(int fd, const std::string& name, TraceFormat format);

}  // namespace firestop::reconcile
