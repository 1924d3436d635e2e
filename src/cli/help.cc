#include "cli/help.h"

#include <algorithm>

#include "cli/terminal.h"

namespace firestop::cli {
namespace {

constexpr size_t kMostColumns = 100;

size_t text_width(const Terminal& terminal) {
  return std::min<size_t>(terminal.width(), kMostColumns);
}

class Page {
 public:
  explicit Page(const Terminal& terminal) : terminal_(terminal) {}

  void heading(const std::string& title) {
    text_ += "\n" + terminal_.paint(Style::kBold, title + ":", Stream::kOut) + "\n";
  }
  void paragraph(const Paragraph& paragraph) {
    text_ += "\n";
    text_ += paragraph.verbatim ? paragraph.text : wrap_words(paragraph.text, 0, text_width(terminal_));
    text_ += "\n";
  }
  // Two columns; the left one as wide as its widest member, within reason.
  void list(const std::vector<std::pair<std::string, std::string>>& items) {
    constexpr size_t kWidest = 26;
    size_t left = 0;
    for (const auto& [name, what] : items)
      if (name.size() <= kWidest) left = std::max(left, name.size());
    const size_t indent = 2 + left + 2;
    for (const auto& [name, what] : items) {
      text_ += "  " + name;
      text_ +=
          name.size() > left ? "\n" + std::string(indent, ' ') : std::string(indent - 2 - name.size(), ' ');
      text_ += wrap_words(what, indent, text_width(terminal_)) + "\n";
    }
  }
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string take() { return std::move(text_); }

 private:
  const Terminal& terminal_;
  std::string text_;
};

void options(Page& page, const CommandSpec& command) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const auto& positional : command.positionals) items.emplace_back(positional.name, positional.help);
  if (!items.empty()) {
    page.heading("Arguments");
    page.list(items);
    items.clear();
  }
  for (const auto& option : command.options)
    items.emplace_back(option.name + (option.metavar.empty() ? "" : " " + option.metavar), option.help);
  items.emplace_back("-h, --help", "this page");
  page.heading("Options");
  page.list(items);
}

}  // namespace

std::vector<Paragraph> paragraphs_of(const std::string& description) {
  std::vector<Paragraph> all;
  size_t at = 0;
  while (at < description.size()) {
    const size_t end = std::min(description.find("\n\n", at), description.size());
    Paragraph one{description.substr(at, end - at), false};
    one.verbatim = one.text.starts_with("  ");
    if (!one.verbatim) std::replace(one.text.begin(), one.text.end(), '\n', ' ');
    all.push_back(std::move(one));
    at = end + 2;
  }
  return all;
}

const std::vector<Variable>& environment_variables() {
  static const std::vector<Variable> kVariables = {
      {"XDG_STATE_HOME", "where runs are kept, in firestop/ below it (default: ~/.local/state)"},
      {"XDG_CACHE_HOME", "where images are kept, in firestop/ below it (default: ~/.cache)"},
      {"XDG_CONFIG_HOME", "where the operator's settings are, in firestop/ below it (default: ~/.config)"},
      {"FIRESTOP_ACCEL", "kvm or tcg: use this way to run the machine, without trying"},
      {"NO_COLOR", "any value: no colours, not on a terminal either"},
      {"COLUMNS", "the width to write for"},
  };
  return kVariables;
}

std::string overview(const CommandTable& table, const Terminal& terminal) {
  Page page(terminal);
  page.line(
      wrap_words("firestop: run code that nobody has read in a microVM of its own", 2, text_width(terminal)));
  page.line("");
  page.line("Usage: firestop COMMAND [options]");
  page.heading("Commands");
  std::vector<std::pair<std::string, std::string>> items;
  for (const auto& command : table)
    if (!command.hidden && !command.is_group()) items.emplace_back(command.name, command.summary);
  page.list(items);
  page.heading("Options");
  page.list({{"-h, --help", "this page; `firestop COMMAND --help` for a command's"},
             {"-V, --version", "the version"}});
  page.heading("Begin with");
  page.list({{"firestop init", "writes a manifest for the repository you stand in"},
             {"firestop explain", "says what a sandbox of it could touch"},
             {"firestop run -- COMMAND", "runs a command in it; its commits come back as a branch"}});
  return page.take();
}

std::string help_of(const CommandTable& table, const CommandSpec& command, const Terminal& terminal) {
  Page page(terminal);
  page.line(wrap_words("firestop " + command.name + ": " + command.summary, 2, text_width(terminal)));
  page.line("");
  page.line("Usage: " + wrap_words(usage_line(command), 11, text_width(terminal)));
  for (const auto& paragraph : paragraphs_of(command.description)) page.paragraph(paragraph);
  if (const auto members = commands_of(table, command); !members.empty()) {
    page.heading("Commands");
    std::vector<std::pair<std::string, std::string>> items;
    for (const auto* member : members) items.emplace_back(member->name, member->summary);
    page.list(items);
  }
  options(page, command);
  if (!command.examples.empty()) {
    page.heading("Examples");
    for (const auto& example : command.examples) {
      page.line("  " + terminal.paint(Style::kBold, example.command, Stream::kOut));
      page.line("      " + wrap_words(example.what, 6, text_width(terminal)));
    }
  }
  if (!command.exits.empty()) {
    page.heading("Exit status");
    std::vector<std::pair<std::string, std::string>> items;
    for (const auto& exit : command.exits) items.emplace_back(exit.status, exit.meaning);
    page.list(items);
  }
  return page.take();
}

}  // namespace firestop::cli
