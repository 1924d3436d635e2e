// --help, from the table.
#pragma once

#include <string>

#include "cli/command.h"

namespace firestop::cli {

std::string overview(const CommandTable& table, const Terminal& terminal);
std::string help_of(const CommandTable& table, const CommandSpec& command, const Terminal& terminal);

// The paragraphs of a description: prose, or lines to be kept as they are.
struct Paragraph {
  std::string text;
  bool verbatim = false;
};
std::vector<Paragraph> paragraphs_of(const std::string& description);

// The environment variables that every command minds, with what they do; for help and manual pages.
struct Variable {
  std::string name, meaning;
};
const std::vector<Variable>& environment_variables();

}  // namespace firestop::cli
