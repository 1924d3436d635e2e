#include "cli/command.h"

#include <algorithm>
#include <cstdlib>

namespace firestop::cli {
namespace {

const char* meaning_of(ExitStatus status) {
  switch (status) {
    case ExitStatus::kOk:
      return "done";
    case ExitStatus::kUsage:
      return "the command line or the manifest is wrong";
    case ExitStatus::kSignature:
      return "the manifest is not signed, or its signature was refused";
    case ExitStatus::kCannotStart:
      return "nothing was done: something needed is missing or was refused";
    case ExitStatus::kRating:
      return "the manifest's rating (deadline) was reached";
    case ExitStatus::kCap:
      return "a declared limit ended the run";
    case ExitStatus::kHelper:
      return "the machine, a helper process or the guest failed under way";
    case ExitStatus::kResult:
      return "the run ended, but its result could not be imported";
    case ExitStatus::kRecord:
      return "the run was ended, because its record could not be kept";
  }
  return "";
}

// Edits (insert, delete, change, swap of neighbours) between two short words.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::string positional_usage(const PositionalSpec& positional) {
  switch (positional.kind) {
    case PositionalKind::kOptional:
      return "[" + positional.name + "]";
    case PositionalKind::kRequired:
      return positional.name;
    case PositionalKind::kOneOrMore:
      return positional.name + "...";
    case PositionalKind::kAnyNumber:
      return "[" + positional.name + "...]";
    case PositionalKind::kAfterDashes:
      return "[-- " + positional.name + "...]";
  }
  return {};
}

}  // namespace

ExitNote exit_note(ExitStatus status, std::string meaning) {
  if (meaning.empty()) meaning = meaning_of(status);
  return {std::to_string(static_cast<int>(status)), std::move(meaning)};
}

const std::vector<std::string>& ParsedArgs::values(std::string_view name) const {
  const auto found = given_.find(name);
  if (found == given_.end()) std::abort();  // the command asks for what its table does not declare
  return found->second;
}

bool ParsedArgs::has(std::string_view name) const {
  return !values(name).empty();
}

std::optional<std::string> ParsedArgs::value(std::string_view name) const {
  const auto& all = values(name);
  if (all.empty()) return std::nullopt;
  return all.back();
}

const std::string& ParsedArgs::required(std::string_view name) const {
  const auto& all = values(name);
  if (all.empty()) std::abort();  // the parser lets none through without it
  return all.back();
}

std::string ParsedArgs::value_or(std::string_view name, std::string_view fallback) const {
  return value(name).value_or(std::string(fallback));
}

OptionSpec json_option() {
  return {
      .name = "--json", .metavar = "", .help = "print one JSON document on standard output, errors included"};
}

PositionalSpec manifest_positional() {
  return {.name = "FILE",
          .help = "the manifest (default: firestop.yaml)",
          .kind = PositionalKind::kOptional,
          .completes = Completes::kFiles};
}

const CommandSpec* find_command(const CommandTable& table, std::string_view name) {
  for (const auto& command : table)
    if (command.name == name) return &command;
  return nullptr;
}

std::vector<const CommandSpec*> commands_of(const CommandTable& table, const CommandSpec& group) {
  std::vector<const CommandSpec*> members;
  for (const auto& command : table)
    if (!command.hidden && command.name.starts_with(group.name + " ")) members.push_back(&command);
  return members;
}

std::string usage_line(const CommandSpec& command) {
  std::string line = "firestop " + command.name;
  if (command.is_group()) return line + " COMMAND";
  std::string last;
  for (const auto& positional : command.positionals) {
    const std::string word = " " + positional_usage(positional);
    (positional.kind == PositionalKind::kAfterDashes ? last : line) += word;
  }
  for (const auto& option : command.options) {
    line += " [" + option.name + (option.metavar.empty() ? "" : " " + option.metavar) + "]";
    if (option.kind == OptionKind::kRepeatable) line += "...";
  }
  return line + last;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return {};
  std::string best;
  size_t best_distance = std::max<size_t>(1, std::min<size_t>(2, word.size() / 3)) + 1;
  for (const auto& candidate : candidates) {
    const size_t d = candidate.starts_with(word) && word.size() > 2 ? 0 : distance(word, candidate);
    if (d < best_distance) best_distance = d, best = candidate;
  }
  return best;
}

}  // namespace firestop::cli
