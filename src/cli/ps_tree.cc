// `firestop ps-tree RUN`: the processes of a run, who started whom, and what became of them.
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/record_place.h"
#include "cli/record_view.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

using story::kNone;
using story::Process;
using story::Story;

constexpr size_t kMostCommand = 400;  // bytes of a command that are shown
constexpr size_t kMostBars = 24;      // levels of the tree that are drawn; deeper ones are numbered

// What a process ran: its programs in order, the last with its arguments.
std::string what_it_ran(const Story& story, size_t index) {
  const Process& process = story.processes[index];
  if (process.execs.empty()) {
    const auto* inherited = story::program_of(story, index);
    return inherited ? "(a copy of " + printable(story::name_of(story, index)) + ")" : "(not seen)";
  }
  std::string out;
  for (size_t i = 0; i + 1 < process.execs.size() && out.size() < kMostCommand; ++i)
    out += command_text(process.execs[i], 60) + " => ";
  return out + command_text(process.execs.back(), kMostCommand);
}

bool ran_unread(const Process& process) {
  for (const auto& execution : process.execs)
    if (!execution.from_image) return true;
  return false;
}

struct Level {
  size_t process = kNone;
  size_t depth = 0;
  std::string bars;  // before it
  bool last = false;
};

// Depth first without recursion: the guest decides how deep it is.
template <typename Visit>
void walk(const Story& story, Visit visit) {
  std::vector<Level> todo;
  for (auto root = story.roots.rbegin(); root != story.roots.rend(); ++root)
    todo.push_back({*root, 0, "", true});
  while (!todo.empty()) {
    const Level level = std::move(todo.back());
    todo.pop_back();
    visit(level);
    const auto& children = story.processes[level.process].children;
    std::string bars = level.bars;
    if (level.depth > 0 && level.depth < kMostBars) bars += level.last ? "   " : "|  ";
    for (size_t i = children.size(); i-- > 0;)
      todo.push_back({children[i], level.depth + 1, bars, i + 1 == children.size()});
  }
}

std::string branch(const Level& level) {
  if (level.depth == 0) return "";
  if (level.depth > kMostBars) return level.bars + "[" + std::to_string(level.depth) + "] ";
  return level.bars + (level.last ? "`- " : "|- ");
}

std::string cpu_text(const Process& process) {
  if (!process.ended) return "-";
  const uint64_t us = process.user_us + process.system_us;
  return format_duration(std::chrono::milliseconds(us / 1000));
}

Style exit_style(const Process& process) {
  if (!process.ended) return Style::kDim;
  return process.status == 0 ? Style::kPlain : Style::kYellow;
}

codec::Json execution_json(const story::Execution& execution) {
  codec::JsonArray argv;
  for (const auto& word : execution.argv) argv.push_back(evidence::json_of_bytes(word));
  codec::JsonObject out{{"at_us", execution.at_us},      {"file", evidence::json_of_bytes(execution.file)},
                        {"image", execution.from_image}, {"argv", std::move(argv)},
                        {"cut", execution.cut},          {"cwd", evidence::json_of_bytes(execution.cwd)},
                        {"uid", execution.uid},          {"gid", execution.gid}};
  if (!execution.digest.empty()) out["digest"] = execution.digest;
  return out;
}

codec::Json tree_json(const Story& story) {
  codec::JsonArray all;
  for (size_t i = 0; i < story.processes.size(); ++i) {
    const Process& process = story.processes[i];
    codec::JsonArray execs;
    for (const auto& execution : process.execs) execs.push_back(execution_json(execution));
    codec::JsonObject out{{"index", static_cast<int64_t>(i)},
                          {"pid", process.pid},
                          {"parent_pid", process.parent_pid},
                          {"parent", codec::Json()},
                          {"started_us", process.started_us},
                          {"ended_us", process.ended_us},
                          {"ended", process.ended},
                          {"status", process.status},
                          {"user_us", process.user_us},
                          {"system_us", process.system_us},
                          {"max_rss_kib", process.max_rss_kib},
                          {"execs", std::move(execs)}};
    if (process.parent != kNone) out["parent"] = static_cast<int64_t>(process.parent);
    all.emplace_back(std::move(out));
  }
  return all;
}

Result<int> ps_tree(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const auto record, open_record(args.required("RUN"), context));
  const Story& story = record.story;
  if (context.json) {
    print_json(context, tree_json(story));
    return 0;
  }
  Terminal& terminal = context.terminal;
  if (story.processes.empty()) {
    terminal.out("no process was seen\n");
    return 0;
  }
  Table table({{"TOOK", Table::Align::kRight},
               {"CPU", Table::Align::kRight},
               {"EXIT", Table::Align::kRight},
               {"PID", Table::Align::kRight},
               {"PROCESS"}});
  bool unread = false;
  walk(story, [&](const Level& level) {
    const Process& process = story.processes[level.process];
    const bool marked = ran_unread(process);
    unread = unread || marked;
    table.add({{took_text(process.started_us, process.ended_us), {}},
               {cpu_text(process), {}},
               {exit_text(process), exit_style(process)},
               {std::to_string(process.pid), Style::kDim},
               {branch(level) + (marked ? "* " : "") + what_it_ran(story, level.process),
                marked ? Style::kYellow : Style::kPlain}});
  });
  terminal.out(table.render(terminal));
  if (unread) terminal.out("* not from the image; `firestop scripts` has the bytes\n");
  for (const auto& [what, count] : story.lost)
    terminal.out("lost: " + std::to_string(count) + " of " + printable(what) + "\n");
  return 0;
}

}  // namespace

CommandSpec ps_tree_command() {
  return {
      .name = "ps-tree",
      .summary = "show the processes of a run as a tree",
      .description =
          "Every process that a run's collectors saw, below the one that started it: how long it lived, "
          "processor time, exit status or signal, process id in the guest, and what it ran. `a => b` is a "
          "process that executed one program after the other. A star marks programs that are not from the "
          "image.\n\n"
          "With --json: an array of processes, in order; `parent` is a place in it.",
      .positionals = {run_or_directory()},
      .options = {json_option()},
      .examples = {{"firestop ps-tree fix", "the newest run that is named fix"},
                   {"firestop ps-tree fix --json | jq '.[] | select(.status != 0)'",
                    "what did not end well, for a program"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "there is no such run, or more than one"),
                exit_note(ExitStatus::kCannotStart, "it has no record, or one that cannot be read")},
      .handler = ps_tree,
  };
}

}  // namespace firestop::cli
