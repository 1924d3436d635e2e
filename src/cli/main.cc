#include <csignal>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/parse.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

Result<int> carry_out(const Invocation& invocation, Context& context) {
  switch (invocation.kind) {
    case Invocation::Kind::kVersion:
      context.terminal.out(std::string("firestop ") + version() + "\n");
      return 0;
    case Invocation::Kind::kOverview:
      context.terminal.out(overview(context.commands, context.terminal));
      return 0;
    case Invocation::Kind::kHelp:
      context.terminal.out(help_of(context.commands, *invocation.command, context.terminal));
      return 0;
    case Invocation::Kind::kCommand:
      break;
  }
  return invocation.command->handler(invocation.args, context);
}

int main_with(const std::vector<std::string>& words) {
  Terminal terminal(terminal_settings_of_process());
  const CommandTable commands = all_commands();
  Context context{terminal, commands, asks_for_json(words)};
  const CommandSpec* named = words.empty() ? nullptr : find_command(commands, words.front());
  context.json_lines = named && named->stdout_is_foreign;
  int status = 0;
  if (const auto invocation = parse_command_line(commands, words); !invocation) {
    status = report(context, invocation.error());
  } else if (const auto done = carry_out(*invocation, context); !done) {
    status = report(context, done.error());
  } else {
    status = *done;
  }
  if (const auto flushed = terminal.flush(); !flushed) {
    context.json = false;  // the place for it is the one that failed
    const int failed = report(context, flushed.error());
    if (status == 0) status = failed;
  }
  return status;
}

}  // namespace
}  // namespace firestop::cli

int main(int argc, char** argv) {
  // A reader that goes away shows as EPIPE where it is written to, and ends nothing else.
  std::signal(SIGPIPE, SIG_IGN);
  return firestop::cli::main_with({argv + (argc > 0 ? 1 : 0), argv + argc});
}
