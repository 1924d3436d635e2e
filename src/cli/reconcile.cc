// `firestop reconcile RUN --trace FILE`: the agent's own account against the record.
#include "reconcile/reconcile.h"

#include "base/digest.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/record_place.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "evidence/content_store.h"

namespace firestop::cli {
namespace {

constexpr int kFindings = 3;
constexpr uint64_t kMostScript = 8u << 20;

Result<int> reconcile(const ParsedArgs& args, Context& context) {
  const auto trace_file = args.value("--trace");
  if (!trace_file)
    return fail("usage.missing", "--trace is missing", "give the agent's own trace: --trace FILE");
  TRY_ASSIGN(const auto place, find_record(args.required("RUN"), context));
  TRY_ASSIGN(const auto story, story::read_story(place.directory));
  const auto format = reconcile::trace_format(args.value_or("--trace-format", "auto"));
  TRY_ASSIGN(const auto trace,
             reconcile::read_trace(*trace_file, format.value_or(reconcile::TraceFormat::kAuto)));
  reconcile::ReconcileOptions options;
  options.expected = args.values("--expect");
  options.content = [&place](const std::string& digest) {
    const auto path = evidence::content_path(place.directory, digest);
    auto bytes = path.empty() ? std::string() : read_file(path, kMostScript).value_or("");
    return sha256_hex(bytes) == digest ? bytes : std::string();
  };
  const auto account = reconcile::reconcile(story, trace, options);
  if (context.json)
    print_json(context, reconcile::to_json(account, story, trace));
  else
    context.terminal.out(reconcile::to_text(account, story, trace, [&context](std::string_view text) {
      return context.terminal.paint(Style::kBold, text, Stream::kOut);
    }));
  return account.findings.empty() ? 0 : kFindings;
}

}  // namespace

CommandSpec reconcile_command() {
  return {
      .name = "reconcile",
      .summary = "hold an agent's own trace against the record of its run",
      .description =
          "Reads the trace that an agent wrote about itself and lists what ran and was never mentioned, what "
          "was claimed and never ran, and what was claimed with another result (exit status, bytes of a "
          "file). "
          "docs/reconcile.md has every rule, and what is not found.\n\n"
          "A command of the trace stands for what it starts as long as that comes from the image, came in "
          "with "
          "the workspace, or is shown by the trace; a script that it started and that the trace does not "
          "show "
          "is listed below it. What the agent's harness runs by itself can be declared with --expect.\n\n"
          "With --json: an object with findings, each {kind, what, why, event, pid, trace_line, claimed, "
          "recorded, code, times}, and counts.",
      .positionals = {run_or_directory()},
      .options = {{.name = "--trace",
                   .metavar = "FILE",
                   .help = "the agent's trace, 256 MiB at most",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  {.name = "--trace-format",
                   .metavar = "FORMAT",
                   .help = "what the trace is; auto finds out",
                   .kind = OptionKind::kValue,
                   .values = {"auto", "claude-code", "codex", "openai-agents", "otel", "jsonl"}},
                  {.name = "--expect",
                   .metavar = "PATTERN",
                   .help =
                       "a command line that the harness runs by itself (\"git status*\"), or, beginning with "
                       "a slash, a path of its own code",
                   .kind = OptionKind::kRepeatable},
                  json_option()},
      .examples = {{"firestop reconcile fix --trace session.jsonl",
                    "what the agent did not say, or only said"},
                   {"firestop reconcile fix --trace rollout.jsonl --json | jq -r '.findings[].what'",
                    "the same for a program"},
                   {"firestop reconcile fix --trace t.jsonl --expect 'git *' --expect 'rg *'",
                    "without what this agent's harness always runs"}},
      .exits = {exit_note(ExitStatus::kOk, "the trace and the record agree"),
                {"3", "there are findings"},
                exit_note(ExitStatus::kUsage, "there is no such run, or the trace is of no known format"),
                exit_note(ExitStatus::kCannotStart, "the record or the trace cannot be read")},
      .handler = reconcile,
  };
}

}  // namespace firestop::cli
