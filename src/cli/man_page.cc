#include "cli/man_page.h"

#include <algorithm>

#include "base/version.h"
#include "cli/help.h"

namespace firestop::cli {
namespace {

// Text that roff takes as it stands: backslashes, hyphens that are to be copied from the page, and lines that
// would begin with a control character.
std::string roff(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    switch (text[i]) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += text[i];
    }
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + roff(text) + "\\fR";
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

std::string head(const std::string& name, const std::string& summary) {
  return ".\\\" Made from firestop's table of commands.\n.TH " + upper(roff(name)) + " 1 \"\" \"firestop " +
         version() + "\" \"Firestop Manual\"\n.SH NAME\n" + roff(name) + " \\- " + roff(summary) + "\n";
}

void tagged(std::string& page, const std::string& tag, std::string_view text) {
  page += ".TP\n" + tag + "\n" + roff(text) + "\n";
}

std::string tag_of(const OptionSpec& option) {
  return bold(option.name) + (option.metavar.empty() ? "" : " " + italic(option.metavar));
}

void synopsis(std::string& page, const CommandSpec& command) {
  page += ".SH SYNOPSIS\n" + bold("firestop " + command.name);
  const std::string words = "firestop " + command.name;
  page += roff(usage_line(command).substr(words.size())) + "\n";
}

void description(std::string& page, const CommandSpec& command) {
  page += ".SH DESCRIPTION\n";
  bool first = true;
  for (const auto& paragraph : paragraphs_of(command.description)) {
    if (!first) page += ".PP\n";
    first = false;
    page += paragraph.verbatim ? ".EX\n" + roff(paragraph.text) + "\n.EE\n" : roff(paragraph.text) + "\n";
  }
}

void exits(std::string& page, const CommandSpec& command) {
  if (command.exits.empty()) return;
  page += ".SH EXIT STATUS\n";
  for (const auto& exit : command.exits) tagged(page, bold(exit.status), exit.meaning);
}

void examples(std::string& page, const CommandSpec& command) {
  if (command.examples.empty()) return;
  page += ".SH EXAMPLES\n";
  for (const auto& example : command.examples) tagged(page, bold(example.command), example.what);
}

void see_also(std::string& page, const std::vector<std::string>& names) {
  page += ".SH SEE ALSO\n";
  for (size_t i = 0; i < names.size(); ++i)
    page += bold(names[i]) + "(1)" + (i + 1 < names.size() ? ",\n" : "\n");
}

void environment(std::string& page) {
  page += ".SH ENVIRONMENT\n";
  for (const auto& variable : environment_variables()) tagged(page, bold(variable.name), variable.meaning);
}

}  // namespace

std::string man_name(const CommandSpec& command) {
  std::string name = "firestop-" + command.name;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page_of(const CommandTable& table, const CommandSpec& command) {
  std::string page = head(man_name(command), command.summary);
  synopsis(page, command);
  description(page, command);
  std::vector<std::string> related{"firestop"};
  if (const auto members = commands_of(table, command); !members.empty()) {
    page += ".SH COMMANDS\n";
    for (const auto* member : members) {
      tagged(page, bold("firestop " + member->name), member->summary);
      related.push_back(man_name(*member));
    }
  }
  page += ".SH OPTIONS\n";
  for (const auto& positional : command.positionals) tagged(page, italic(positional.name), positional.help);
  for (const auto& option : command.options) tagged(page, tag_of(option), option.help);
  tagged(page, bold("-h") + ", " + bold("--help"), "print a short form of this page");
  exits(page, command);
  environment(page);
  examples(page, command);
  see_also(page, related);
  return page;
}

std::string man_overview(const CommandTable& table) {
  std::string page = head("firestop", "run code that nobody has read in a microVM of its own");
  page += ".SH SYNOPSIS\n" + bold("firestop") + " " + italic("COMMAND") + " [" + italic("options") + "]\n";
  page +=
      ".SH DESCRIPTION\nFirestop runs code that nobody has read, an AI agent and everything that it writes "
      "and executes, in a compartment: a microVM with its own kernel, drawn beforehand in a manifest. What "
      "the manifest does not grant, the sandbox does not have. What it did comes back as a branch; the "
      "checkout is never touched.\n";
  page += ".SH COMMANDS\n";
  std::vector<std::string> related;
  for (const auto& command : table) {
    if (command.hidden) continue;
    related.push_back(man_name(command));
    if (!command.is_group()) tagged(page, bold("firestop " + command.name), command.summary);
  }
  page += ".SH OPTIONS\n";
  tagged(page, bold("-h") + ", " + bold("--help"), "list the commands");
  tagged(page, bold("-V") + ", " + bold("--version"), "print the version");
  page += ".SH EXIT STATUS\n";
  tagged(page, bold("n"), "with `firestop run`: the command's own status; 128+n after signal n");
  for (const ExitStatus status :
       {ExitStatus::kUsage, ExitStatus::kSignature, ExitStatus::kCannotStart, ExitStatus::kRating,
        ExitStatus::kCap, ExitStatus::kHelper, ExitStatus::kResult, ExitStatus::kRecord}) {
    const ExitNote note = exit_note(status);
    tagged(page, bold(note.status), note.meaning);
  }
  environment(page);
  see_also(page, related);
  return page;
}

}  // namespace firestop::cli
