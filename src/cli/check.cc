#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "manifest/load.h"
#include "manifest/needs.h"

namespace firestop::cli {
namespace {

Result<int> check(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const manifest::Loaded loaded, manifest::load_file(args.value_or("FILE", "firestop.yaml")));
  const int status = static_cast<int>(loaded.faults.empty() ? ExitStatus::kOk : ExitStatus::kUsage);
  if (context.json) {
    print_json(context, diagnostics_json(loaded.faults));
    return status;
  }
  if (!loaded.faults.empty()) {
    print_faults(context, loaded.faults, loaded.text);
    return status;
  }
  const auto& manifest = loaded.manifest;
  const size_t entries = manifest.entries.size();
  context.terminal.out(printable(manifest.file) + ": ok (" + printable(manifest.name) + ", " +
                       std::to_string(entries) + (entries == 1 ? " entry" : " entries") + ")\n");
  if (const auto supported = manifest::check_supported(manifest); !supported)
    context.terminal.err("firestop: `firestop run` of this version will refuse it:\n" +
                         supported.error().message + "\n");
  return status;
}

}  // namespace

CommandSpec check_command() {
  return {
      .name = "check",
      .summary = "say whether a manifest is right, or everything that is wrong with it",
      .description =
          "Reads the manifest strictly and reports every fault as FILE:LINE:COLUMN: FIELD: what is wrong; "
          "what is expected, with the line and a caret. Starts nothing and needs nothing installed.\n\n"
          "With --json the faults are an array of {file, line, column, field, wrong, expected}, empty if "
          "the manifest is right.",
      .positionals = {manifest_positional()},
      .options = {json_option()},
      .examples = {{"firestop check", "check ./firestop.yaml"},
                   {"firestop check ci/agent.yaml --json", "the faults for an editor or a CI job"}},
      .exits = {exit_note(ExitStatus::kOk, "the manifest is right"),
                exit_note(ExitStatus::kUsage, "it is wrong, cannot be read, or the command line is wrong")},
      .handler = check,
  };
}

}  // namespace firestop::cli
