// What the readers of traces share: where claims are collected, and what a tool call claims.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "reconcile/trace.h"

namespace firestop::reconcile {

// Claims in order, found again by the id of their call when its answer comes.
class ClaimBook {
 public:
  explicit ClaimBook(Trace& trace) : trace_(trace) {}

  // A call of `tool` with `arguments` (an object, or text that may be JSON). `id` may be empty: then no
  // answer can come, and `answered` says whether the entry itself has it.
  enum class Answered { kNo, kYes };
  void call(std::string_view id, std::string_view tool, const codec::Json& arguments, std::string_view cwd,
            Answered answered);
  struct Answer {
    std::optional<int> exit;
    bool done = true;  // false: refused, or not known to have run
  };
  void answer(std::string_view id, const Answer& answer);
  void add(Claim claim, std::string_view id);
  void at_line(uint64_t line) { line_ = line; }

 private:
  void patch(const Claim& base, std::string_view text, std::string_view id);
  bool commands(const Claim& base, const codec::Json& arguments, std::string_view id);
  bool file(const Claim& base, const codec::Json& arguments, std::string_view id);
  bool operation(const Claim& base, const codec::Json& arguments, std::string_view id);

  Trace& trace_;
  uint64_t line_ = 0, bytes_ = 0;
  std::map<std::string, std::vector<size_t>, std::less<>> calls_;
};

class TraceReader {
 public:
  explicit TraceReader(Trace& trace) : book_(trace) {}
  virtual ~TraceReader() = default;
  // Whether `entry` belongs to this format; other entries are passed over.
  virtual bool take(const codec::Json& entry) = 0;
  ClaimBook& book() { return book_; }

 private:
  ClaimBook book_;
};

std::unique_ptr<TraceReader> claude_code_reader(Trace& trace);    // trace_claude_code.cc
std::unique_ptr<TraceReader> codex_reader(Trace& trace);          // trace_codex.cc
std::unique_ptr<TraceReader> openai_agents_reader(Trace& trace);  // trace_openai_agents.cc
std::unique_ptr<TraceReader> otel_reader(Trace& trace);           // trace_otel.cc
std::unique_ptr<TraceReader> jsonl_reader(Trace& trace);          // trace_jsonl.cc

// What an answer says of the exit: {"exit_code": 1}, {"metadata": {"exit_code": 1}}, the Responses API's
// "outcome", or text whose first lines say it ("Exit code 1", "Process exited with code 1"). Text that a
// command printed itself is not asked.
std::optional<int> exit_of_answer(const codec::Json& answer);

// A member of `json` that is an object or an array, or an empty value.
const codec::Json& member(const codec::Json& json, std::string_view key);

}  // namespace firestop::reconcile
