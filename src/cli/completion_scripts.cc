#include "cli/completion_scripts.h"

namespace firestop::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// For text of ours between single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// For what stands in "...[text]..." of zsh's _arguments, itself between single quotes.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::vector<std::string> first_words(const CommandTable& table) {
  std::vector<std::string> words;
  for (const auto& command : table)
    if (!command.hidden && command.name.find(' ') == std::string::npos) words.push_back(command.name);
  return words;
}

std::vector<std::string> members(const CommandTable& table, const CommandSpec& group) {
  std::vector<std::string> words;
  for (const auto* member : commands_of(table, group))
    words.push_back(member->name.substr(group.name.size() + 1));
  return words;
}

// What bash offers for a word of this kind, as a command that fills COMPREPLY.
std::string bash_words(Completes completes, const std::vector<std::string>& values,
                       const CommandTable& table) {
  switch (completes) {
    case Completes::kFiles:
      return "compopt -o default; COMPREPLY=()";
    case Completes::kDirectories:
      return "compopt -o dirnames; COMPREPLY=()";
    case Completes::kRuns:
      return R"x(COMPREPLY=($(compgen -W "$(firestop __complete runs 2>/dev/null)" -- "$cur")))x";
    case Completes::kImages:
      return R"x(COMPREPLY=($(compgen -W "$(firestop __complete images 2>/dev/null)" -- "$cur")))x";
    case Completes::kCommands:
      return "COMPREPLY=($(compgen -W " + quoted(joined(first_words(table))) + " -- \"$cur\"))";
    case Completes::kWords:
      return "COMPREPLY=($(compgen -W " + quoted(joined(values)) + " -- \"$cur\"))";
    case Completes::kNothing:
      break;
  }
  return "COMPREPLY=()";
}

std::string zsh_action(Completes completes, const std::vector<std::string>& values,
                       const CommandTable& table) {
  switch (completes) {
    case Completes::kFiles:
      return "_files";
    case Completes::kDirectories:
      return "_files -/";
    case Completes::kRuns:
      return "_firestop_asked runs";
    case Completes::kImages:
      return "_firestop_asked images";
    case Completes::kCommands:
      return "(" + joined(first_words(table)) + ")";
    case Completes::kWords:
      return "(" + joined(values) + ")";
    case Completes::kNothing:
      break;
  }
  return " ";
}

std::string fish_arguments(Completes completes, const std::vector<std::string>& values,
                           const CommandTable& table) {
  switch (completes) {
    case Completes::kFiles:
      return "-F";
    case Completes::kDirectories:
      return "-x -a '(__fish_complete_directories)'";
    case Completes::kRuns:
      return "-x -a '(firestop __complete runs 2>/dev/null)'";
    case Completes::kImages:
      return "-x -a '(firestop __complete images 2>/dev/null)'";
    case Completes::kCommands:
      return "-x -a " + quoted(joined(first_words(table)));
    case Completes::kWords:
      return "-x -a " + quoted(joined(values));
    case Completes::kNothing:
      break;
  }
  return "-x";
}

// "log) case $word in verify|path) ... ;; esac ;;" for the commands that take an argument or a command.
std::string either_cases(const CommandTable& table, const std::string& word, const std::string& join) {
  std::string out;
  for (const auto& command : table) {
    const auto words = members(table, command);
    if (command.hidden || command.is_group() || words.empty()) continue;
    std::string alternatives;
    for (const auto& each : words) alternatives += (alternatives.empty() ? "" : "|") + each;
    out += "    " + command.name + ")\n      case " + word + " in " + alternatives + ") " + join +
           " ;; esac\n    ;;\n";
  }
  return out;
}

// The positional that words without a name of their own are taken for; the last one repeats.
const PositionalSpec* plain_positional(const CommandSpec& command) {
  for (const auto& positional : command.positionals)
    if (positional.kind != PositionalKind::kAfterDashes) return &positional;
  return nullptr;
}

std::string bash_case(const CommandTable& table, const CommandSpec& command) {
  std::string valued, options = "--help";
  for (const auto& option : command.options) {
    options += " " + option.name;
    if (option.kind != OptionKind::kFlag)
      valued += "      " + option.name + ") " + bash_words(option.completes, option.values, table) +
                "; return ;;\n";
  }
  std::string out = "  " + quoted(command.name) + ")\n";
  if (!valued.empty()) out += "    case $prev in\n" + valued + "    esac\n";
  out += "    if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W " + quoted(options) +
         " -- \"$cur\")); return; fi\n";
  if (command.is_group()) {
    out += "    COMPREPLY=($(compgen -W " + quoted(joined(members(table, command))) + " -- \"$cur\"))\n";
  } else if (const auto* positional = plain_positional(command)) {
    out += "    " + bash_words(positional->completes, positional->values, table) + "\n";
    if (const auto words = members(table, command); !words.empty())
      out += "    COMPREPLY+=($(compgen -W " + quoted(joined(words)) + " -- \"$cur\"))\n";
  }
  return out + "    ;;\n";
}

std::string zsh_case(const CommandTable& table, const CommandSpec& command) {
  std::string out = "  " + quoted(command.name) + ")\n    _arguments -s -S";
  for (const auto& option : command.options) {
    out += " \\\n      '" + std::string(option.kind == OptionKind::kRepeatable ? "*" : "") + option.name +
           "[" + zsh_text(option.help) + "]";
    if (option.kind != OptionKind::kFlag)
      out += ":" + zsh_text(option.metavar) + ":" + zsh_action(option.completes, option.values, table);
    out += "'";
  }
  out += " \\\n      '(-h --help)'{-h,--help}'[print help]'";
  for (const auto& positional : command.positionals) {
    const bool many =
        positional.kind == PositionalKind::kOneOrMore || positional.kind == PositionalKind::kAnyNumber;
    if (positional.kind == PositionalKind::kAfterDashes) continue;
    std::string action = zsh_action(positional.completes, positional.values, table);
    if (const auto words = members(table, command);
        !words.empty() && &positional == plain_positional(command))
      action = "{" + action + "; compadd " + joined(words) + "}";
    out +=
        " \\\n      '" + std::string(many ? "*" : "") + ":" + zsh_text(positional.name) + ":" + action + "'";
  }
  if (command.is_group()) out += " \\\n      ':command:(" + joined(members(table, command)) + ")'";
  return out + "\n    ;;\n";
}

}  // namespace

std::string bash_completion(const CommandTable& table) {
  std::string groups, cases;
  for (const auto& command : table) {
    if (command.hidden) continue;
    if (command.is_group()) groups += (groups.empty() ? "" : "|") + command.name;
    cases += bash_case(table, command);
  }
  return "# bash completion for firestop; made by `firestop completion bash`.\n"
         "_firestop() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
         "  COMPREPLY=()\n"
         "  # Behind -- stands somebody else's command.\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    if [[ ${COMP_WORDS[i]} == -- ]]; then compopt -o default; return; fi\n"
         "  done\n"
         "  if ((COMP_CWORD > 1)); then command=${COMP_WORDS[1]}; fi\n"
         "  case $command in\n"
         "    " +
         groups + ") if ((COMP_CWORD > 2)); then command+=\" ${COMP_WORDS[2]}\"; fi ;;\n" +
         either_cases(table, "${COMP_WORDS[2]}",
                      "if ((COMP_CWORD > 2)); then command+=\" ${COMP_WORDS[2]}\"; fi") +
         "  esac\n"
         "  case $command in\n"
         "  '')\n"
         "    COMPREPLY=($(compgen -W " +
         quoted(joined(first_words(table)) + " --help --version") +
         " -- \"$cur\"))\n"
         "    ;;\n" +
         cases +
         "  esac\n"
         "}\n"
         "complete -F _firestop firestop\n";
}

std::string zsh_completion(const CommandTable& table) {
  std::string groups, cases, commands;
  for (const auto& command : table) {
    if (command.hidden) continue;
    if (command.is_group()) groups += (groups.empty() ? "" : "|") + command.name;
    if (command.name.find(' ') == std::string::npos)
      commands += "    '" + zsh_text(command.name) + ":" + zsh_text(command.summary) + "'\n";
    cases += zsh_case(table, command);
  }
  return "#compdef firestop\n"
         "# zsh completion for firestop; made by `firestop completion zsh`.\n"
         "_firestop_asked() {\n"
         "  local -a answers\n"
         "  answers=(${(f)\"$(firestop __complete $1 2>/dev/null)\"})\n"
         "  compadd -a answers\n"
         "}\n"
         "_firestop() {\n"
         "  local -a commands\n"
         "  local command\n"
         "  commands=(\n" +
         commands +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe 'command' commands\n"
         "    return\n"
         "  fi\n"
         "  # Behind -- stands somebody else's command.\n"
         "  if (( ${words[(i)--]} < CURRENT )); then\n"
         "    _files\n"
         "    return\n"
         "  fi\n"
         "  command=${words[2]}\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $command in\n"
         "  " +
         groups +
         ")\n"
         "    if (( CURRENT > 2 )); then\n"
         "      command+=\" ${words[2]}\"\n"
         "      shift words\n"
         "      (( CURRENT-- ))\n"
         "    fi\n"
         "    ;;\n" +
         either_cases(
             table, "${words[2]}",
             "if (( CURRENT > 2 )); then command+=\" ${words[2]}\"; shift words; (( CURRENT-- )); fi") +
         "  esac\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = \"_firestop\" ]; then\n"
         "  _firestop \"$@\"\n"
         "else\n"
         "  compdef _firestop firestop\n"
         "fi\n";
}

std::string fish_completion(const CommandTable& table) {
  std::string out =
      "# fish completion for firestop; made by `firestop completion fish`.\n"
      "# Whether the command line names this command (one word, or two of a group), and nothing after --.\n"
      "function __firestop_is\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  contains -- -- $words; and return 1\n"
      "  if test (count $argv) -eq 0\n"
      "    test (count $words) -eq 0\n"
      "    return\n"
      "  end\n"
      "  test (count $words) -ge (count $argv); or return 1\n"
      "  for i in (seq (count $argv))\n"
      "    test \"$words[$i]\" = \"$argv[$i]\"; or return 1\n"
      "  end\n"
      "end\n"
      "complete -c firestop -n __firestop_is -f\n"
      "complete -c firestop -n __firestop_is -s h -l help -d 'List the commands'\n"
      "complete -c firestop -n __firestop_is -s V -l version -d 'Print the version'\n";
  for (const auto& command : table) {
    if (command.hidden) continue;
    const size_t space = command.name.find(' ');
    const std::string where = space == std::string::npos
                                  ? "__firestop_is"
                                  : quoted("__firestop_is " + command.name.substr(0, space));
    out += "complete -c firestop -n " + where + " -f -a " +
           quoted(space == std::string::npos ? command.name : command.name.substr(space + 1)) + " -d " +
           quoted(command.summary) + "\n";
    const std::string inside = "complete -c firestop -n " + quoted("__firestop_is " + command.name);
    out += inside + " -s h -l help -d 'Print help'\n";
    for (const auto& option : command.options) {
      out += inside + " -l " + option.name.substr(2) + " -d " + quoted(option.help);
      if (option.kind != OptionKind::kFlag)
        out += " -r " + fish_arguments(option.completes, option.values, table);
      out += "\n";
    }
    if (const auto* positional = plain_positional(command))
      out += inside + " " + fish_arguments(positional->completes, positional->values, table) + "\n";
  }
  return out;
}

}  // namespace firestop::cli
