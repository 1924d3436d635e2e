#include "base/file.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/man_page.h"

namespace firestop::cli {
namespace {

Result<int> man(const ParsedArgs& args, Context& context) {
  const std::string& directory = args.required("DIR");
  TRY(make_directories(directory, 0755));
  TRY(write_file_atomic(join_path(directory, "firestop.1"), man_overview(context.commands), 0644));
  for (const auto& command : context.commands)
    if (!command.hidden)
      TRY(write_file_atomic(join_path(directory, man_name(command) + ".1"),
                            man_page_of(context.commands, command), 0644));
  return 0;
}

}  // namespace

CommandSpec man_command() {
  return {
      .name = "__man",
      .summary = "write the manual pages",
      .description = "Writes a manual page for every command into DIR. The build calls it.",
      .positionals = {{.name = "DIR",
                       .help = "the folder to write them to",
                       .kind = PositionalKind::kRequired,
                       .completes = Completes::kDirectories}},
      .examples = {{"firestop __man /tmp/man1", "the pages of this very program"}},
      .handler = man,
      .hidden = true,
  };
}

}  // namespace firestop::cli
