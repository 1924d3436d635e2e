#include "manifest/explain.h"

#include "cli/commands.h"
#include "cli/drawing.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "manifest/load.h"

namespace firestop::cli {
namespace {

// The bytes that are signed, and nothing after them.
Result<int> explain_canonical(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const auto drawing, load_drawing(args, context));
  if (!drawing) return static_cast<int>(ExitStatus::kUsage);
  context.terminal.out(drawing->canonical);
  return 0;
}

Result<int> explain(const ParsedArgs& args, Context& context) {
  if (args.value_or("--format", "text") == "canonical") return explain_canonical(args, context);
  if (args.value_or("--format", "text") == "json") context.json = true;
  TRY_ASSIGN(const manifest::Loaded loaded, manifest::load_file(args.value_or("FILE", "firestop.yaml")));
  if (!loaded.faults.empty()) {
    if (!context.json) {
      print_faults(context, loaded.faults, loaded.text);
      return static_cast<int>(ExitStatus::kUsage);
    }
    return fail("manifest.invalid", loaded.faults.front().headline(), "`firestop check` shows every fault");
  }
  if (context.json) {
    print_json(context, manifest::explain_json(loaded.manifest));
    return 0;
  }
  const bool colour = context.terminal.settings().out_colour;
  context.terminal.out(
      manifest::explain_text(loaded.manifest, colour ? manifest::Colour::kOn : manifest::Colour::kOff));
  return 0;
}

}  // namespace

CommandSpec explain_command() {
  return {
      .name = "explain",
      .summary = "say what a sandbox of a manifest could touch, and what it could not",
      .description =
          "Answers the reviewer's question from the manifest alone: which files come in, which go out, "
          "mounts, network, credentials by name, capabilities, caps, the deadline, and what is not granted.",
      .positionals = {manifest_positional()},
      .options = {{.name = "--format",
                   .metavar = "FORMAT",
                   .help = "text (the default), json, or canonical: the bytes that are signed, with the lock",
                   .kind = OptionKind::kValue,
                   .values = {"text", "json", "canonical"},
                   .completes = Completes::kWords},
                  {.name = "--json", .metavar = "", .help = "the same as --format json"}},
      .examples = {{"firestop explain", "explain ./firestop.yaml"},
                   {"firestop explain agent.yaml --format json | jq .network", "one answer, for a program"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage,
                          "the manifest is wrong, cannot be read, or the command line is wrong")},
      .handler = explain,
  };
}

}  // namespace firestop::cli
