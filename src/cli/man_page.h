// Manual pages (man(7) macros), from the table.
#pragma once

#include <string>

#include "cli/command.h"

namespace firestop::cli {

// "firestop-image-build" for a command of that name.
std::string man_name(const CommandSpec& command);
std::string man_page_of(const CommandTable& table, const CommandSpec& command);
std::string man_overview(const CommandTable& table);  // firestop(1)

}  // namespace firestop::cli
