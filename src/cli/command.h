// One table of commands. The parser, --help, the manual pages and the shell completions are all made from it,
// so none of them can know an option that the others don't. A command is one file with one function that
// returns its CommandSpec; table.cc lists them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_status.h"
#include "base/result.h"

namespace firestop::cli {

class Terminal;
struct CommandSpec;
using CommandTable = std::vector<CommandSpec>;

// What a shell can offer for a word.
enum class Completes { kNothing, kFiles, kDirectories, kRuns, kImages, kCommands, kWords };

enum class OptionKind { kFlag, kValue, kRepeatable };

struct OptionSpec {
  std::string name;     // "--name"
  std::string metavar;  // "NAME"; empty for a flag
  std::string help;     // one sentence without a full stop
  OptionKind kind = OptionKind::kFlag;
  std::vector<std::string> values{};  // if not empty: the only values, also for completion
  Completes completes = Completes::kNothing;
};

enum class PositionalKind {
  kOptional,
  kRequired,
  kOneOrMore,
  kAnyNumber,
  kAfterDashes,  // everything after "--", as it is; the last positional only
};

struct PositionalSpec {
  std::string name;  // "FILE"
  std::string help;
  PositionalKind kind = PositionalKind::kOptional;
  std::vector<std::string> values{};  // as in OptionSpec
  Completes completes = Completes::kNothing;
};

struct Example {
  std::string command;  // "firestop run -- make test"
  std::string what;     // "run the tests in a sandbox"
};

struct ExitNote {
  std::string status;  // "240"; "n" for the command's own
  std::string meaning;
};
// The project-wide meaning of a status, as docs/exit-codes.md has it, or one that is nearer to the command.
ExitNote exit_note(ExitStatus status, std::string meaning = {});

// What the user wrote, by the names of the table. Asking for a name that the command does not declare aborts.
class ParsedArgs {
 public:
  bool has(std::string_view name) const;                          // a flag, option or positional was given
  std::optional<std::string> value(std::string_view name) const;  // the last one
  std::string value_or(std::string_view name, std::string_view fallback) const;
  const std::string& required(std::string_view name) const;             // of a required positional
  const std::vector<std::string>& values(std::string_view name) const;  // in order

 private:
  friend class Parser;
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
};

// What a command may use of the world around it.
struct Context {
  Terminal& terminal;
  const CommandTable& commands;
  // --json was given. stdout carries one JSON document, errors included; of a command whose stdout belongs to
  // somebody else, stderr carries one object a line.
  bool json = false;
  bool json_lines = false;
};

struct CommandSpec {
  std::string name;         // "run", or "image build" for a command of a group
  std::string summary;      // a few words, lower case, no full stop
  std::string description;  // paragraphs, separated by empty lines; a line that begins with two spaces stays
  std::vector<PositionalSpec> positionals{};
  std::vector<OptionSpec> options{};
  std::vector<Example> examples{};
  std::vector<ExitNote> exits{};
  // The process's exit status. An error is printed by the caller (report.h) and gives its status. Without a
  // handler it is a group: its name is the first word of others. With one it may be that, too: then a word
  // that names such a command means it, and after "--" stands what is meant as an argument.
  std::function<Result<int>(const ParsedArgs&, Context&)> handler{};
  bool hidden = false;
  bool stdout_is_foreign = false;  // what the sandboxed command prints goes there, and nothing else

  bool is_group() const { return !handler; }
};

// Common options, so that they read the same everywhere.
OptionSpec json_option();
PositionalSpec manifest_positional();  // FILE

const CommandSpec* find_command(const CommandTable& table, std::string_view name);
// The commands of a group, in order, without the hidden ones.
std::vector<const CommandSpec*> commands_of(const CommandTable& table, const CommandSpec& group);
// "firestop run [FILE] [--name NAME] ... [-- COMMAND...]"
std::string usage_line(const CommandSpec& command);
// The one of `candidates` that `word` is most likely a slip of, or empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace firestop::cli
