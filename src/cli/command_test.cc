#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/completion_scripts.h"
#include "cli/help.h"
#include "cli/man_page.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CommandTable table() {
  return {{.name = "open",
           .summary = "open it",
           .description = "It's a 'quoted' text with a \\ and a - in it.\n\n  .verbatim\n  lines\n\nEnd.",
           .positionals = {{.name = "RUN",
                            .help = "which",
                            .kind = PositionalKind::kOneOrMore,
                            .completes = Completes::kRuns}},
           .options = {{.name = "--how",
                        .metavar = "HOW",
                        .help = "it's [how]: so",
                        .kind = OptionKind::kValue,
                        .values = {"wide", "shut"},
                        .completes = Completes::kWords}},
           .examples = {{"firestop open x", "opens x"}},
           .exits = {exit_note(ExitStatus::kUsage)},
           .handler = [](const ParsedArgs&, Context&) -> Result<int> { return 0; }},
          {.name = "__secret",
           .summary = "no",
           .handler = [](const ParsedArgs&, Context&) -> Result<int> { return 0; },
           .hidden = true}};
}

TEST(CommandTest, UsageLinesSayWhatIsOptional) {
  EXPECT_EQ(usage_line(table()[0]), "firestop open RUN... [--how HOW]");
  CommandSpec run{
      .name = "run",
      .positionals = {manifest_positional(), {.name = "COMMAND", .kind = PositionalKind::kAfterDashes}},
      .options = {{.name = "--bind", .metavar = "N=P", .kind = OptionKind::kRepeatable}},
      .handler = table()[0].handler};
  EXPECT_EQ(usage_line(run), "firestop run [FILE] [--bind N=P]... [-- COMMAND...]");
}

TEST(CommandTest, NearestFindsSlipsAndNothingElse) {
  const std::vector<std::string> names{"run", "runs", "rm", "show", "check", "explain", "doctor"};
  EXPECT_EQ(nearest("rnu", names), "run");
  EXPECT_EQ(nearest("chekc", names), "check");
  EXPECT_EQ(nearest("expl", names), "explain");
  EXPECT_EQ(nearest("doktor", names), "doctor");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("banana", names), "");
  EXPECT_EQ(nearest(std::string(100000, 'x'), names), "");
}

TEST(CommandTest, EveryFormSaysWhatTheTableSays) {
  Terminal terminal(TerminalSettings{});
  const CommandTable commands = table();
  const std::string help = help_of(commands, commands[0], terminal);
  EXPECT_THAT(help, HasSubstr("Usage: firestop open RUN... [--how HOW]"));
  EXPECT_THAT(help, HasSubstr("\n  .verbatim\n  lines\n"));
  EXPECT_THAT(help, HasSubstr("firestop open x"));
  EXPECT_THAT(help, HasSubstr("240"));
  EXPECT_THAT(help, Not(HasSubstr("\x1b")));
  const std::string man = man_page_of(commands, commands[0]);
  EXPECT_THAT(man, HasSubstr(".TH FIRESTOP\\-OPEN 1"));
  EXPECT_THAT(man, HasSubstr("It\\(aqs a \\(aqquoted\\(aq text with a \\e and a \\- in it."));
  EXPECT_THAT(man, Not(HasSubstr("\n.verbatim")));
  for (const auto& script :
       {bash_completion(commands), zsh_completion(commands), fish_completion(commands)}) {
    EXPECT_THAT(script, HasSubstr("open"));
    EXPECT_THAT(script, HasSubstr("wide shut"));
    EXPECT_THAT(script, HasSubstr("__complete"));
    EXPECT_THAT(script, HasSubstr(" runs"));
    EXPECT_THAT(script, Not(HasSubstr("__secret")));
  }
  EXPECT_THAT(zsh_completion(commands), HasSubstr("[it'\\''s \\[how\\]\\: so]"));
  EXPECT_THAT(overview(commands, terminal), Not(HasSubstr("__secret")));
  EXPECT_THAT(man_overview(commands), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace firestop::cli
