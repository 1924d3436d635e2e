#include "base/version.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace firestop::cli {

CommandSpec version_command() {
  return {
      .name = "version",
      .summary = "print the version",
      .description = "Prints the version of firestop. `firestop --version` does the same.",
      .options = {json_option()},
      .examples = {{"firestop version --json", "the version for programs: {\"version\": \"0.1.0\"}"}},
      .exits = {exit_note(ExitStatus::kOk), exit_note(ExitStatus::kUsage, "the command line is wrong")},
      .handler = [](const ParsedArgs&, Context& context) -> Result<int> {
        if (context.json)
          print_json(context, codec::JsonObject{{"version", version()}});
        else
          context.terminal.out(std::string("firestop ") + version() + "\n");
        return 0;
      },
  };
}

}  // namespace firestop::cli
