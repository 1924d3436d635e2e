#include "cli/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firestop::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<int> nothing(const ParsedArgs&, Context&) {
  return 0;
}

CommandTable table() {
  return {
      {.name = "run",
       .positionals = {manifest_positional(), {.name = "COMMAND", .kind = PositionalKind::kAfterDashes}},
       .options = {{.name = "--name", .metavar = "NAME", .kind = OptionKind::kValue},
                   {.name = "--bind", .metavar = "N=PATH", .kind = OptionKind::kRepeatable},
                   {.name = "--tty"},
                   json_option()},
       .handler = nothing},
      {.name = "show",
       .positionals = {{.name = "RUN", .kind = PositionalKind::kRequired}},
       .handler = nothing},
      {.name = "rm",
       .positionals = {{.name = "RUN", .kind = PositionalKind::kOneOrMore}},
       .handler = nothing},
      {.name = "explain",
       .positionals = {manifest_positional()},
       .options =
           {{.name = "--format", .metavar = "F", .kind = OptionKind::kValue, .values = {"text", "json"}}},
       .handler = nothing},
      {.name = "image"},
      {.name = "image build", .positionals = {{.name = "NAME"}}, .handler = nothing},
      {.name = "image list", .handler = nothing},
      {.name = "__hidden", .handler = nothing, .hidden = true},
  };
}

class ParseTest : public ::testing::Test {
 protected:
  Invocation good(const std::vector<std::string>& words) {
    auto parsed = parse_command_line(table_, words);
    EXPECT_TRUE(parsed) << parsed.error().to_string();
    return parsed ? *parsed : Invocation{};
  }
  Error bad(const std::vector<std::string>& words) {
    const auto parsed = parse_command_line(table_, words);
    EXPECT_FALSE(parsed);
    return parsed ? Error{} : parsed.error();
  }
  CommandTable table_ = table();
};

TEST_F(ParseTest, OptionsAndPositionalsInAnyOrder) {
  const auto found = good({"run", "--name", "fix", "a.yaml", "--bind", "x=/x", "--bind=y=/y", "--tty"});
  EXPECT_EQ(found.command->name, "run");
  EXPECT_EQ(found.args.value("FILE"), "a.yaml");
  EXPECT_EQ(found.args.value("--name"), "fix");
  EXPECT_THAT(found.args.values("--bind"), ElementsAre("x=/x", "y=/y"));
  EXPECT_TRUE(found.args.has("--tty"));
  EXPECT_FALSE(found.args.has("--json"));
  EXPECT_THAT(found.args.values("COMMAND"), IsEmpty());
}

TEST_F(ParseTest, ARepeatableOptionTakesOneWordEachTime) {
  EXPECT_EQ(good({"run", "--bind", "x=/x", "a.yaml"}).args.value("FILE"), "a.yaml");
}

TEST_F(ParseTest, BehindDashesNothingIsOurs) {
  const auto found = good({"run", "--", "sh", "-c", "--help", "--", "--name", "x", "[a,b]", ""});
  EXPECT_THAT(found.args.values("COMMAND"),
              ElementsAre("sh", "-c", "--help", "--", "--name", "x", "[a,b]", ""));
  EXPECT_FALSE(found.args.has("FILE"));
  EXPECT_FALSE(found.args.has("--name"));
  EXPECT_FALSE(asks_for_json({"run", "--", "--json"}));
  EXPECT_TRUE(asks_for_json({"run", "--json", "--", "x"}));
}

TEST_F(ParseTest, WordsArriveAsTheyAre) {
  for (const char* word : {"[a,b]", "{}", "a b", "%%", "\"q\"", "'q'", "ä", "a=b", "@file", "/w"}) {
    EXPECT_EQ(good({"run", word}).args.value("FILE"), word);
    EXPECT_EQ(good({"run", "--name", word}).args.value("--name"), word);
    EXPECT_THAT(good({"run", "--bind", word}).args.values("--bind"), ElementsAre(word));
    EXPECT_THAT(good({"rm", word, word}).args.values("RUN"), ElementsAre(word, word));
  }
}

TEST_F(ParseTest, NamesOfCommandsMayNameRuns) {
  EXPECT_EQ(good({"show", "run"}).args.value("RUN"), "run");
  EXPECT_THAT(good({"rm", "show", "rm", "image"}).args.values("RUN"), ElementsAre("show", "rm", "image"));
}

TEST_F(ParseTest, GroupsHaveCommands) {
  EXPECT_EQ(good({"image", "build", "x"}).command->name, "image build");
  EXPECT_EQ(good({"image", "build", "x"}).args.value("NAME"), "x");
  EXPECT_EQ(bad({"image"}).code, "usage.no_command");
  EXPECT_THAT(bad({"image", "biuld"}).hint, HasSubstr("'firestop image build'"));
}

TEST_F(ParseTest, HelpAndVersionWork) {
  EXPECT_EQ(good({"--help"}).kind, Invocation::Kind::kOverview);
  EXPECT_EQ(good({"--version"}).kind, Invocation::Kind::kVersion);
  EXPECT_EQ(good({"run", "--no-such-thing", "-h"}).kind, Invocation::Kind::kHelp);
  EXPECT_EQ(good({"image", "--help"}).command->name, "image");
  EXPECT_EQ(good({"image", "list", "--help"}).command->name, "image list");
}

TEST_F(ParseTest, WrongLinesAreRefusedWithAHint) {
  struct Row {
    std::vector<std::string> words;
    const char* code;
    const char* message;
    const char* hint;
    const char* why;
  };
  const Row rows[] = {
      {{}, "usage.no_command", "no command", "firestop help", "nothing at all"},
      {{"rnu"}, "usage.unknown_command", "'rnu'", "'firestop run'", "swapped letters"},
      {{"xyzzy"}, "usage.unknown_command", "'xyzzy'", "There are: run", "nothing near"},
      {{"--json", "run"},
       "usage.unknown_option",
       "'--json'",
       "behind the command",
       "option before the command"},
      {{"run", "--nmae", "x"},
       "usage.unknown_option",
       "'--nmae'",
       "'--name'",
       "swapped letters in an option"},
      {{"run", "--na=x"}, "usage.unknown_option", "'--na'", "--help", "no abbreviations"},
      {{"run", "-x"}, "usage.unknown_option", "'-x'", "--help", "a short option that is not there"},
      {{"run", "--name"}, "usage.bad_option", "--name needs a value", "--help", "value missing"},
      {{"run", "--name", "a", "--name", "b"}, "usage.bad_option", "more than once", "--help", "given twice"},
      {{"run", "--tty=no"}, "usage.bad_option", "--tty takes no value", "--help", "a flag with a value"},
      {{"run", "a", "b"}, "usage.unexpected_argument", "'b'", "usage: firestop run", "one word too many"},
      {{"run", "--"}, "usage.missing_argument", "COMMAND", "usage:", "nothing behind the dashes"},
      {{"show"}, "usage.missing_argument", "RUN", "usage: firestop show RUN", "required word missing"},
      {{"rm"}, "usage.missing_argument", "RUN", "usage:", "one of many missing"},
      {{"explain", "--format", "jsno"}, "usage.bad_value", "'jsno'", "'json'", "not one of the values"},
      {{"show", "--", "a", "b"},
       "usage.unexpected_argument",
       "'b'",
       "usage:",
       "dashes where they end options only"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    const Error error = bad(row.words);
    EXPECT_EQ(error.code, row.code);
    EXPECT_THAT(error.message, HasSubstr(row.message));
    EXPECT_THAT(error.hint, HasSubstr(row.hint));
  }
}

TEST_F(ParseTest, HiddenCommandsWorkAndAreNeverOffered) {
  EXPECT_EQ(good({"__hidden"}).command->name, "__hidden");
  EXPECT_THAT(bad({"__hiden"}).hint, ::testing::Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace firestop::cli
