// The only file that includes CLI11, which takes longer to compile than all the rest of this folder.
#include "cli/parse.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

namespace firestop::cli {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string did_you_mean(const std::string& near, const std::string& otherwise) {
  return near.empty() ? otherwise : "did you mean '" + near + "'? " + otherwise;
}

std::string see_help(const CommandSpec& command) {
  return "see `firestop " + command.name + " --help`";
}

Unexpected unknown_command(const CommandTable& table, const std::string& prefix, const std::string& word) {
  std::vector<std::string> names;
  for (const auto& command : table) {
    if (command.hidden || !command.name.starts_with(prefix)) continue;
    const std::string rest = command.name.substr(prefix.size());
    if (rest.find(' ') == std::string::npos) names.push_back(rest);
  }
  const std::string what =
      prefix.empty() ? "command" : "command of 'firestop " + prefix.substr(0, prefix.size() - 1) + "'";
  const std::string near = nearest(word, names);
  return fail("usage.unknown_command", "'" + word + "' is no " + what,
              did_you_mean(near.empty() ? "" : "firestop " + prefix + near, "There are: " + joined(names)));
}

Unexpected unexpected_word(const CommandSpec& command, const std::string& word) {
  if (!word.starts_with('-') || word == "-")
    return fail("usage.unexpected_argument",
                "'" + word + "' is one argument too many for 'firestop " + command.name + "'",
                "usage: " + usage_line(command));
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names{"--help"};
  for (const auto& option : command.options) names.push_back(option.name);
  return fail("usage.unknown_option", "'" + name + "' is no option of 'firestop " + command.name + "'",
              did_you_mean(nearest(name, names), see_help(command)));
}

Result<void> check_values(const std::string& name, const std::vector<std::string>& allowed,
                          const std::vector<std::string>& given) {
  if (allowed.empty()) return {};
  for (const auto& value : given)
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      return fail("usage.bad_value", "'" + value + "' is no value of " + name,
                  did_you_mean(nearest(value, allowed), "There are: " + joined(allowed)));
  return {};
}

bool asks_for_help(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

// CLI11 is given one command at a time, since subcommand names must stay possible as the names of runs.
class OneCommand {
 public:
  OneCommand(const CommandSpec& command, std::map<std::string, std::vector<std::string>, std::less<>>& given)
      : command_(command), given_(given), app_("", "firestop " + command.name) {
    app_.set_help_flag();
    app_.allow_windows_style_options(false);
    for (const auto& option : command.options) {
      auto& values = given_[option.name];
      if (option.kind == OptionKind::kFlag) {
        app_.add_flag_function(option.name, [&values](std::int64_t) { values = {"true"}; })
            ->disable_flag_override();
      } else {
        auto* made = app_.add_option(option.name, values)->expected(1)->allow_extra_args(false);
        made->multi_option_policy(option.kind == OptionKind::kRepeatable ? CLI::MultiOptionPolicy::TakeAll
                                                                         : CLI::MultiOptionPolicy::Throw);
      }
    }
    for (const auto& positional : command.positionals) {
      auto& values = given_[positional.name];
      switch (positional.kind) {
        case PositionalKind::kAfterDashes:
          break;
        case PositionalKind::kOneOrMore:
        case PositionalKind::kAnyNumber:
          // CLI11 would take "[a,b]" for two of them; what it does not know stays as it is.
          many_ = &values;
          app_.allow_extras();
          break;
        case PositionalKind::kOptional:
        case PositionalKind::kRequired:
          app_.add_option(positional.name, values)->expected(1)->allow_extra_args(false);
      }
    }
  }

  Result<void> parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // the order that this overload of CLI11 wants
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ExtrasError&) {
      return take_rest();
    } catch (const CLI::ArgumentMismatch& error) {
      return fail("usage.bad_option", option_fault(error.what()), see_help(command_));
    } catch (const std::exception& error) {
      return fail("usage.bad_command_line", error.what(), see_help(command_));
    }
    TRY(take_rest());
    return check();
  }

 private:
  // What CLI11 knew no place for: the words of a positional that takes many, or somebody's mistake.
  Result<void> take_rest() {
    bool options = true;
    const std::string* plain = nullptr;
    const auto rest = app_.remaining();
    for (const auto& word : rest) {
      if (options && word == "--") {
        options = false;
      } else if (options && word.size() > 1 && word.starts_with('-')) {
        return unexpected_word(command_, word);
      } else if (many_) {
        many_->push_back(word);
      } else if (!plain) {
        plain = &word;
      }
    }
    if (plain) return unexpected_word(command_, *plain);
    return {};
  }

  // Which option is meant: CLI11 says so only in words.
  std::string option_fault(const std::string& said) const {
    for (const auto& option : command_.options) {
      const bool meant = said.find(option.name + ":") != std::string::npos ||
                         said.find(option.name + " ") != std::string::npos ||
                         said.starts_with(option.name.substr(2) + " ");
      if (!meant) continue;
      if (option.kind == OptionKind::kFlag) return "option " + option.name + " takes no value";
      if (app_.get_option(option.name)->count() > 1)
        return "option " + option.name + " was given more than once";
      return "option " + option.name + " needs a value: " + option.name + " " + option.metavar;
    }
    return said;
  }

  Result<void> check() {
    for (const auto& option : command_.options) {
      const auto& values = given_[option.name];
      TRY(check_values(option.name, option.values, values));
      if (option.kind == OptionKind::kValue && values.size() > 1)
        return fail("usage.bad_option", "option " + option.name + " was given more than once",
                    see_help(command_));
    }
    for (const auto& positional : command_.positionals) {
      const auto& values = given_[positional.name];
      TRY(check_values(positional.name, positional.values, values));
      const bool needed =
          positional.kind == PositionalKind::kRequired || positional.kind == PositionalKind::kOneOrMore;
      if (needed && values.empty())
        return fail("usage.missing_argument", "'firestop " + command_.name + "' needs " + positional.name,
                    "usage: " + usage_line(command_));
    }
    return {};
  }

  const CommandSpec& command_;
  std::map<std::string, std::vector<std::string>, std::less<>>& given_;
  std::vector<std::string>* many_ = nullptr;
  CLI::App app_;
};

}  // namespace

// Fills ParsedArgs, which nobody else can.
class Parser {
 public:
  static Result<ParsedArgs> parse(const CommandSpec& command, std::vector<std::string> words) {
    ParsedArgs args;
    const bool takes_rest =
        !command.positionals.empty() && command.positionals.back().kind == PositionalKind::kAfterDashes;
    std::vector<std::string> rest;
    if (const auto dashes = std::find(words.begin(), words.end(), "--");
        takes_rest && dashes != words.end()) {
      rest.assign(dashes + 1, words.end());
      words.erase(dashes, words.end());
      if (rest.empty())
        return fail("usage.missing_argument", "after -- stands no " + command.positionals.back().name,
                    "usage: " + usage_line(command));
    }
    TRY(OneCommand(command, args.given_).parse(std::move(words)));
    if (takes_rest) args.given_[command.positionals.back().name] = std::move(rest);
    return args;
  }
};

bool asks_for_json(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

Result<Invocation> parse_command_line(const CommandTable& table, const std::vector<std::string>& words) {
  Invocation found;
  if (words.empty())
    return fail("usage.no_command", "no command was given",
                "`firestop help` lists the commands; `firestop init` begins");
  const std::string& first = words.front();
  if (first == "--help" || first == "-h") {
    found.kind = Invocation::Kind::kOverview;
    return found;
  }
  if (first == "--version" || first == "-V") {
    found.kind = Invocation::Kind::kVersion;
    return found;
  }
  if (first.starts_with('-')) {
    return fail("usage.unknown_option", "'" + first + "' is no option of firestop",
                "options stand behind the command; `firestop help` lists the commands");
  }
  found.command = find_command(table, first);
  if (!found.command) return unknown_command(table, "", first);
  size_t used = 1;
  const bool second = words.size() > 1 && !words[1].starts_with('-');
  const CommandSpec* member = second ? find_command(table, first + " " + words[1]) : nullptr;
  if (member) {
    found.command = member;
    used = 2;
  } else if (found.command->is_group()) {
    if (second) return unknown_command(table, first + " ", words[1]);
    if (!asks_for_help(words)) {
      std::vector<std::string> names;
      for (const auto* command : commands_of(table, *found.command)) names.push_back(command->name);
      return fail("usage.no_command", "'firestop " + first + "' needs a command",
                  "There are: " + joined(names));
    }
  }
  const std::vector<std::string> rest(words.begin() + static_cast<std::ptrdiff_t>(used), words.end());
  if (asks_for_help(rest)) {
    found.kind = Invocation::Kind::kHelp;
    return found;
  }
  TRY_ASSIGN(found.args, Parser::parse(*found.command, rest));
  return found;
}

}  // namespace firestop::cli
