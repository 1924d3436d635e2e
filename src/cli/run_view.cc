#include "cli/run_view.h"

namespace firestop::cli {

using sandbox::RunState;
using sandbox::RunStore;

codec::Json run_json(const RunStore& store, const RunStore::Listed& run) {
  codec::Json json = run.record.to_json();
  codec::JsonObject& members = *json.as_object();
  members["alive"] = run.alive;
  members["directory"] = store.directory_of(run.record.id);
  members["note"] = run.note;
  return json;
}

std::string keepers_text(const sandbox::KeptCap& cap) {
  std::string text;
  for (const auto& keeper : cap.by) text += (text.empty() ? "" : ", ") + sandbox::describe_keeper(keeper);
  return text.empty() ? "nothing" : text;
}

std::string state_word(const RunStore::Listed& run) {
  return run.note.empty() ? to_string(run.record.state) : "unreadable";
}

Style state_style(const RunStore::Listed& run) {
  if (!run.note.empty() || run.record.state == RunState::kDied) return Style::kRed;
  if (run.record.state != RunState::kEnded) return Style::kGreen;
  return run.record.exit_status.value_or(0) == 0 ? Style::kPlain : Style::kYellow;
}

}  // namespace firestop::cli
