#include "cli/commands.h"
#include "cli/help.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

Result<int> help(const ParsedArgs& args, Context& context) {
  std::string name;
  for (const auto& word : args.values("COMMAND")) name += (name.empty() ? "" : " ") + word;
  if (name.empty()) {
    context.terminal.out(overview(context.commands, context.terminal));
    return 0;
  }
  const CommandSpec* command = find_command(context.commands, name);
  if (!command) {
    std::vector<std::string> names;
    for (const auto& each : context.commands)
      if (!each.hidden) names.push_back(each.name);
    const std::string near = nearest(name, names);
    return fail("usage.unknown_command", "there is no command '" + name + "'",
                near.empty() ? "`firestop help` lists them" : "did you mean `firestop help " + near + "`?");
  }
  context.terminal.out(help_of(context.commands, *command, context.terminal));
  return 0;
}

}  // namespace

CommandSpec help_command() {
  return {
      .name = "help",
      .summary = "explain a command, or list them all",
      .description = "Prints what `firestop COMMAND --help` prints; without a command, the list of commands.",
      .positionals = {{.name = "COMMAND",
                       .help = "the command, in one word or two (image build)",
                       .kind = PositionalKind::kAnyNumber,
                       .completes = Completes::kCommands}},
      .examples = {{"firestop help run", "everything about `firestop run`"},
                   {"firestop help image build", "the same for a command of two words"}},
      .exits = {exit_note(ExitStatus::kOk), exit_note(ExitStatus::kUsage, "there is no such command")},
      .handler = help,
  };
}

}  // namespace firestop::cli
