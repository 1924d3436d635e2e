// Codex: its rollouts (~/.codex/sessions/**/rollout-*.jsonl), where items of the Responses API are the
// payload of entries "response_item", and the events of `codex exec --json`.
#include "reconcile/trace_reader.h"

namespace firestop::reconcile {
namespace {

using codec::Json;
using codec::JsonArray;
using Answered = ClaimBook::Answered;

class Codex final : public TraceReader {
 public:
  using TraceReader::TraceReader;

  bool take(const Json& entry) override {
    const std::string type = entry.string_or("type", "");
    const Json& payload = member(entry, "payload");
    if (payload.as_object() && (type == "session_meta" || type == "turn_context")) {
      cwd_ = payload.string_or("cwd", cwd_);
      return true;
    }
    if (payload.as_object() && (type == "response_item" || type == "event_msg")) {
      if (type == "response_item") item(payload);
      if (payload.string_or("type", "") == "exec_command_end") exec_end(payload);
      return true;
    }
    if (type == "thread.started" || type == "turn.started" || type == "item.started") return true;
    if (type != "item.completed" || !member(entry, "item").as_object()) return false;
    completed(member(entry, "item"));
    return true;
  }

 private:
  void item(const Json& item) {
    const std::string type = item.string_or("type", "");
    const std::string id = item.string_or("call_id", item.string_or("id", ""));
    if (type == "function_call")
      book().call(id, item.string_or("name", ""), member(item, "arguments"), cwd_, Answered::kNo);
    if (type == "custom_tool_call")
      book().call(id, item.string_or("name", ""), member(item, "input"), cwd_, Answered::kNo);
    if (type == "local_shell_call") {
      const bool done = item.string_or("status", "") == "completed";
      book().call(id, "local_shell", member(item, "action"), cwd_, done ? Answered::kYes : Answered::kNo);
    }
    if (type == "function_call_output" || type == "custom_tool_call_output" ||
        type == "local_shell_call_output") {
      const Json& output = member(item, "output");
      // Older rollouts have {"content": ..., "success": ...} here.
      const Json& said = output.find("content") ? member(output, "content") : output;
      book().answer(id, {exit_of_answer(said), !refused(said)});
    }
  }

  void exec_end(const Json& event) {
    book().answer(event.string_or("call_id", ""), {exit_of_answer(event), true});
  }

  void completed(const Json& item) {
    const std::string type = item.string_or("type", "");
    if (type == "command_execution") {
      const std::string id = item.string_or("id", "");
      book().call(id, "command_execution", item, cwd_, Answered::kNo);
      book().answer(id, {exit_of_answer(item), item.string_or("status", "") != "declined"});
    }
    const JsonArray* changes = member(item, "changes").as_array();
    if (type != "file_change" || !changes) return;
    for (const Json& change : *changes) {
      Claim claim{
          .kind = change.string_or("kind", "") == "delete" ? Claim::Kind::kDelete : Claim::Kind::kWrite,
          .tool = "file_change"};
      claim.path = change.string_or("path", "");
      claim.sure = item.string_or("status", "") == "completed";
      book().add(std::move(claim), {});
    }
  }

  static bool refused(const Json& said) {
    const std::string* text = said.as_string();
    return text && (text->starts_with("rejected by user") || text->starts_with("failed to parse") ||
                    text->starts_with("unsupported call") || text->starts_with("aborted"));
  }

  std::string cwd_;
};

}  // namespace

std::unique_ptr<TraceReader> codex_reader(Trace& trace) {
  return std::make_unique<Codex>(trace);
}

}  // namespace firestop::reconcile
