#include <algorithm>
#include <ctime>

#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/run_view.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

using sandbox::RunRecord;
using sandbox::RunStore;

std::string time_text(int64_t ms) {
  if (ms <= 0) return "-";
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[40];
  (void)std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

class Lines {
 public:
  explicit Lines(Terminal& terminal) : terminal_(terminal) {}
  void add(const std::string& label, const std::string& value, Style style = Style::kPlain) {
    if (value.empty()) return;
    const std::string padded = label + std::string(label.size() < 12 ? 12 - label.size() : 1, ' ');
    terminal_.out(terminal_.paint(Style::kDim, padded, Stream::kOut) +
                  terminal_.paint(style, printable(value), Stream::kOut) + "\n");
  }

 private:
  Terminal& terminal_;
};

std::string network_text(const RunRecord::Network& network) {
  const auto count = [](uint64_t number, const char* what) { return std::to_string(number) + " " + what; };
  return count(network.allowed, "allowed, ") + count(network.denied, "denied, ") +
         count(network.failed, "failed, ") + (network.alarms > 0 ? count(network.alarms, "alarms, ") : "") +
         (network.lost > 0 ? count(network.lost, "lost, ") : "") + format_bytes(network.bytes) +
         " on the link";
}

std::string steps_text(const RunRecord& record, const Terminal& terminal) {
  int64_t most = 1;
  for (const auto& [step, us] : record.steps_us) most = std::max(most, us);
  Table table({{"STEP"}, {"TIME", Table::Align::kRight}, {""}});
  for (const auto& [step, us] : record.steps_us) {
    char milliseconds[32];
    (void)std::snprintf(milliseconds, sizeof milliseconds, "%.1f ms", static_cast<double>(us) / 1000);
    const auto bar = static_cast<size_t>(std::max<int64_t>(0, us) * 30 / most);
    table.add({{step, {}}, {milliseconds, {}}, {std::string(bar, '#'), Style::kDim}});
  }
  return table.render(terminal);
}

std::string caps_text(const RunRecord& record, const Terminal& terminal) {
  Table table({{"CAP"}, {"LIMIT"}, {"KEPT BY"}});
  for (const auto& cap : record.caps) table.add({{cap.cap, {}}, {cap.limit, {}}, {keepers_text(cap), {}}});
  return table.render(terminal);
}

void page(const RunStore& store, const RunStore::Listed& run, Terminal& terminal) {
  const RunRecord& record = run.record;
  Lines lines(terminal);
  lines.add("run", record.id, Style::kBold);
  if (!run.note.empty()) {
    lines.add("state", "unreadable", Style::kRed);
    lines.add("why", run.note);
    lines.add("directory", store.directory_of(record.id));
    return;
  }
  lines.add("name", record.name);
  lines.add("state", std::string(to_string(record.state)) + (run.alive ? ", alive" : ""), state_style(run));
  if (record.exit_status) lines.add("exit", std::to_string(*record.exit_status));
  lines.add("reason", record.reason);
  lines.add("message", record.message);
  std::string command;
  for (const auto& word : record.command) command += (command.empty() ? "" : " ") + shell_word(word);
  lines.add("command", command);
  lines.add("manifest",
            record.manifest_file + (record.manifest_name.empty() ? "" : " (" + record.manifest_name + ")"));
  lines.add("sha256", record.manifest_digest);
  lines.add("signed by", record.signer + (record.signer_key.empty() ? "" : " (" + record.signer_key + ")"));
  lines.add("image", record.image + (record.image_digest.empty() ? "" : " " + record.image_digest));
  lines.add("machine", record.accelerator);
  lines.add("created", time_text(record.created_ms));
  lines.add("started", time_text(record.started_ms));
  lines.add("ended", time_text(record.ended_ms));
  for (const auto& branch : record.branches)
    lines.add("branch", branch.ref + " in " + branch.repository + ": " + std::to_string(branch.new_commits) +
                            (branch.new_commits == 1 ? " new commit" : " new commits") +
                            (branch.uncommitted ? ", the last with what was left uncommitted" : "") + ", " +
                            branch.commit);
  if (!record.outputs_directory.empty())
    lines.add("outputs", record.outputs_directory + ": " + std::to_string(record.output_files) +
                             (record.output_files == 1 ? " file, " : " files, ") +
                             format_bytes(record.output_bytes));
  if (!record.memory.name.empty())
    lines.add("memory", record.memory.name + ": " + std::to_string(record.memory.files) +
                            (record.memory.files == 1 ? " file, " : " files, ") +
                            format_bytes(record.memory.bytes) +
                            (record.memory.kept              ? ", kept by this run"
                             : record.memory.message.empty() ? ", as they were"
                                                             : ", as they were: " + record.memory.message));
  for (const auto& denied : record.denied)
    lines.add("refused", "to " + denied.kind + " " + (denied.path.empty() ? "others" : denied.path) + ", " +
                             std::to_string(denied.count) + (denied.count == 1 ? " time" : " times"));
  if (record.network.used) lines.add("network", network_text(record.network));
  for (const auto& mapping : record.network.connect_to) lines.add("connect-to", mapping);
  lines.add("upstream-ca", record.network.upstream_ca);
  lines.add("directory", store.directory_of(record.id));
  const std::string console = join_path(store.directory_of(record.id), "console.log");
  if (exists(console)) lines.add("console", console);
  if (!record.caps_note.empty()) lines.add("groups", record.caps_note);
  if (!record.caps.empty()) terminal.out("\n" + caps_text(record, terminal));
  if (!record.steps_us.empty()) terminal.out("\n" + steps_text(record, terminal));
}

Result<int> show(const ParsedArgs& args, Context& context) {
  RunStore store(state_directory());
  sweep(context, store);
  TRY_ASSIGN(const auto run, store.find(args.required("RUN")));
  if (context.json)
    print_json(context, run_json(store, run));
  else
    page(store, run, context.terminal);
  return 0;
}

}  // namespace

CommandSpec show_command() {
  return {
      .name = "show",
      .summary = "show everything about a run",
      .description =
          "Shows a run's record: command, manifest and image by digest, times, how it ended and why, what "
          "came back, where its files are, and where its time went, step by step.",
      .positionals = {{.name = "RUN",
                       .help =
                           "its id, the beginning of its id if no other begins so, or its name (the newest)",
                       .kind = PositionalKind::kRequired,
                       .completes = Completes::kRuns}},
      .options = {json_option()},
      .examples = {{"firestop show fix", "the newest run that is named fix"},
                   {"firestop show 20261129-1329 --json | jq .steps", "where its time went, for a program"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "there is no such run, or more than one"),
                exit_note(ExitStatus::kCannotStart, "the runs cannot be read")},
      .handler = show,
  };
}

}  // namespace firestop::cli
