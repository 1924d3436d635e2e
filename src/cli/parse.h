// The command line, by the table.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace firestop::cli {

struct Invocation {
  enum class Kind { kCommand, kHelp, kOverview, kVersion };
  Kind kind = Kind::kCommand;
  const CommandSpec* command = nullptr;  // with kCommand and kHelp
  ParsedArgs args;                       // with kCommand
};

// `words` is argv without argv[0]. Errors: "usage.*", with a suggestion where one is near.
Result<Invocation> parse_command_line(const CommandTable& table, const std::vector<std::string>& words);

// Whether --json stands before any "--": how errors are to be told even if the rest can't be parsed.
bool asks_for_json(const std::vector<std::string>& words);

}  // namespace firestop::cli
