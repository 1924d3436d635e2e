// Claude Code's sessions (~/.claude/projects/*/*.jsonl) and its `--output-format stream-json`: messages of
// the Messages API, one a line. A call is a block "tool_use" of an assistant's message, its answer a block
// "tool_result" of a user's.
#include "reconcile/trace_reader.h"

namespace firestop::reconcile {
namespace {

using codec::Json;
using codec::JsonArray;

class ClaudeCode final : public TraceReader {
 public:
  using TraceReader::TraceReader;

  bool take(const Json& entry) override {
    const std::string type = entry.string_or("type", "");
    const Json& message = member(entry, "message");
    if ((type != "assistant" && type != "user") || !message.as_object()) return false;
    const JsonArray* blocks = member(message, "content").as_array();
    if (!blocks) return member(message, "content").as_string() != nullptr;
    for (const Json& block : *blocks) {
      const std::string kind = block.string_or("type", "");
      if (type == "assistant" && kind == "tool_use") {
        const bool background = member(block, "input").bool_or("run_in_background", false);
        if (background) background_.insert_or_assign(block.string_or("id", ""), true);
        book().call(block.string_or("id", ""), block.string_or("name", ""), member(block, "input"),
                    entry.string_or("cwd", ""), ClaimBook::Answered::kNo);
      } else if (type == "user" && kind == "tool_result") {
        answer(block, member(entry, "toolUseResult"));
      }
    }
    return true;
  }

 private:
  // An answer without error stands for status 0. Not of a command that was left running or interrupted, nor
  // of one of which the tool says that another status was no error (grep's 1).
  void answer(const Json& block, const Json& result) {
    const std::string id = block.string_or("tool_use_id", "");
    ClaimBook::Answer out;
    const Json& content = member(block, "content");
    if (block.bool_or("is_error", false)) {
      out.exit = exit_of_answer(first_text(content));
      out.done = out.exit.has_value() || timed_out(content);
    } else if (!background_.contains(id) && !result.bool_or("interrupted", false) &&
               !result.find("returnCodeInterpretation") && !result.find("backgroundTaskId")) {
      out.exit = 0;
    }
    book().answer(id, out);
  }

  static const Json& first_text(const Json& content) {
    const JsonArray* parts = content.as_array();
    return parts && !parts->empty() ? parts->front() : content;
  }

  static bool timed_out(const Json& content) {
    const Json& first = first_text(content);
    const std::string text = first.as_string() ? *first.as_string() : first.string_or("text", "");
    return text.find("timed out") != std::string::npos;
  }

  std::map<std::string, bool> background_;
};

}  // namespace

std::unique_ptr<TraceReader> claude_code_reader(Trace& trace) {
  return std::make_unique<ClaudeCode>(trace);
}

}  // namespace firestop::reconcile
