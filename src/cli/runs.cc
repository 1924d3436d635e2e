#include <algorithm>
#include <chrono>

#include "base/path.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/run_view.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

constexpr size_t kShown = 20;

using sandbox::RunStore;

std::string duration(const RunStore::Listed& run, int64_t now) {
  const int64_t from = run.record.created_ms;
  const int64_t to = run.record.ended_ms ? run.record.ended_ms : run.alive ? now : 0;
  return from <= 0 || to < from ? "-" : format_duration(std::chrono::milliseconds(to - from));
}

std::string branches(const sandbox::RunRecord& record) {
  std::string out;
  for (const auto& branch : record.branches) {
    constexpr std::string_view kHeads = "refs/heads/";
    std::string_view ref = branch.ref;
    if (ref.starts_with(kHeads)) ref.remove_prefix(kHeads.size());
    out += (out.empty() ? "" : ", ") + std::string(ref);
  }
  return out.empty() ? "-" : out;
}

Result<int> runs(const ParsedArgs& args, Context& context) {
  RunStore store(state_directory());
  sweep(context, store);
  TRY_ASSIGN(const auto all, store.list());
  if (context.json) {
    codec::JsonArray list;
    for (const auto& run : all) list.push_back(run_json(store, run));
    print_json(context, std::move(list));
    return 0;
  }
  if (all.empty()) {
    context.terminal.out("no runs yet; `firestop run -- COMMAND` makes one\n");
    return 0;
  }
  Table table({{"RUN"},
               {"NAME"},
               {"STATE"},
               {"EXIT", Table::Align::kRight},
               {"AGE", Table::Align::kRight},
               {"TOOK", Table::Align::kRight},
               {"BRANCH"}});
  const int64_t now = now_ms();
  size_t shown = 0, hidden = 0;
  for (const auto& run : all) {
    if (!run.alive && !args.has("--all") && shown >= kShown) {
      ++hidden;
      continue;
    }
    ++shown;
    table.add({{run.record.id, {}},
               {run.note.empty() ? run.record.name : "-", {}},
               {state_word(run), state_style(run)},
               {run.record.exit_status ? std::to_string(*run.record.exit_status) : "-", {}},
               {age_of(run.record.created_ms, now), {}},
               {duration(run, now), {}},
               {run.note.empty() ? branches(run.record) : run.note, {}}});
  }
  context.terminal.out(table.render(context.terminal));
  if (hidden > 0)
    context.terminal.out("and " + std::to_string(hidden) + " older; `firestop runs --all` shows them\n");
  return 0;
}

}  // namespace

CommandSpec runs_command() {
  return {
      .name = "runs",
      .summary = "list the runs",
      .description = "Lists your runs, newest first: those that live, and the newest " +
                     std::to_string(kShown) +
                     " in all. A run is preparing, running, ended, or died, which means that its firestop "
                     "process was killed; what such a run left behind is removed by this command, too.\n\n"
                     "With --json: an array of every run, each as `firestop show RUN --json` prints it.",
      .options = {{.name = "--all", .metavar = "", .help = "every run (with --json they always are)"},
                  json_option()},
      .examples = {{"firestop runs", "what runs, and what ran last"},
                   {"firestop runs --json | jq -r '.[] | select(.alive).id'", "the ids of those that live"}},
      .exits = {exit_note(ExitStatus::kOk), exit_note(ExitStatus::kUsage, "the command line is wrong"),
                exit_note(ExitStatus::kCannotStart, "the runs cannot be read")},
      .handler = runs,
  };
}

}  // namespace firestop::cli
