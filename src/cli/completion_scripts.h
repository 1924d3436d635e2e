// Completion scripts for shells, from the table. Run ids and image names are asked of `firestop __complete`.
#pragma once

#include <string>

#include "cli/command.h"

namespace firestop::cli {

std::string bash_completion(const CommandTable& table);
std::string zsh_completion(const CommandTable& table);
std::string fish_completion(const CommandTable& table);

}  // namespace firestop::cli
