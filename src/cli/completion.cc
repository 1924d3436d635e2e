#include "base/path.h"
#include "cli/commands.h"
#include "cli/completion_scripts.h"
#include "cli/terminal.h"
#include "image/recipe.h"
#include "sandbox/run_store.h"

namespace firestop::cli {
namespace {

Result<int> completion(const ParsedArgs& args, Context& context) {
  const std::string& shell = args.required("SHELL");
  context.terminal.out(shell == "bash"  ? bash_completion(context.commands)
                       : shell == "zsh" ? zsh_completion(context.commands)
                                        : fish_completion(context.commands));
  return 0;
}

Result<int> complete(const ParsedArgs& args, Context& context) {
  if (args.required("WHAT") == "runs") {
    TRY_ASSIGN(const auto runs, sandbox::RunStore(state_directory()).list());
    for (const auto& run : runs) context.terminal.out(run.record.id + "\n");
  } else {
    for (const auto& name : image::recipe_names()) context.terminal.out(name + "\n");
  }
  return 0;
}

}  // namespace

CommandSpec completion_command() {
  return {
      .name = "completion",
      .summary = "print the completion script of a shell",
      .description =
          "Prints a script that lets the shell complete commands, options, run ids and image names. `make "
          "install` puts the scripts where the shells look; this command is for everywhere else.",
      .positionals = {{.name = "SHELL",
                       .help = "bash, zsh or fish",
                       .kind = PositionalKind::kRequired,
                       .values = {"bash", "zsh", "fish"},
                       .completes = Completes::kWords}},
      .examples = {{"source <(firestop completion bash)", "for this shell only"},
                   {"firestop completion fish > ~/.config/fish/completions/firestop.fish",
                    "for every fish to come"}},
      .exits = {exit_note(ExitStatus::kOk), exit_note(ExitStatus::kUsage, "no such shell is known")},
      .handler = completion,
  };
}

CommandSpec complete_command() {
  return {
      .name = "__complete",
      .summary = "list words for a shell's completion",
      .description = "Prints run ids or image names, one a line. Completion scripts call it.",
      .positionals = {{.name = "WHAT",
                       .help = "runs or images",
                       .kind = PositionalKind::kRequired,
                       .values = {"runs", "images"},
                       .completes = Completes::kWords}},
      .examples = {{"firestop __complete runs", "every run's id"}},
      .handler = complete,
      .hidden = true,
  };
}

}  // namespace firestop::cli
