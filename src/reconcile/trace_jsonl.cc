// Our own plain format, for agents that have none of the others: one JSON object a line,
//
//   {"command": "make test", "exit": 0, "cwd": "repo"}     or with "command" as an array of arguments
//   {"write": "src/a.c", "sha256": "..."}
//   {"delete": "src/b.c"}
#include "reconcile/trace_reader.h"

namespace firestop::reconcile {
namespace {

using codec::Json;
using codec::JsonArray;

class Jsonl final : public TraceReader {
 public:
  using TraceReader::TraceReader;

  bool take(const Json& entry) override {
    Claim claim{.kind = Claim::Kind::kCommand, .tool = "command"};
    claim.cwd = entry.string_or("cwd", "");
    if (const Json* command = entry.find("command")) {
      if (command->as_string()) claim.command = *command->as_string();
      if (const JsonArray* words = command->as_array())
        for (const Json& word : *words)
          if (word.as_string()) claim.argv.push_back(*word.as_string());
      if (claim.command.empty() && claim.argv.empty()) return false;
      claim.exit = exit_of_answer(entry);
    } else if (const Json* path = entry.find("write"); path && path->as_string()) {
      claim.kind = Claim::Kind::kWrite;
      claim.tool = "write";
      claim.path = *path->as_string();
      claim.digest = entry.string_or("sha256", "");
    } else if (const Json* gone = entry.find("delete"); gone && gone->as_string()) {
      claim.kind = Claim::Kind::kDelete;
      claim.tool = "delete";
      claim.path = *gone->as_string();
    } else {
      return false;
    }
    book().add(std::move(claim), {});
    return true;
  }
};

}  // namespace

std::unique_ptr<TraceReader> jsonl_reader(Trace& trace) {
  return std::make_unique<Jsonl>(trace);
}

}  // namespace firestop::reconcile
