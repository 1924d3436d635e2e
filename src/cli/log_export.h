// `firestop log RUN --format ocsf` and `--otlp URL`.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace firestop::cli {

std::vector<OptionSpec> export_options();
bool wants_export(const ParsedArgs& args);
// Of the record in `directory`; the status to end with.
Result<int> export_record(const ParsedArgs& args, const std::string& directory, Context& context);

}  // namespace firestop::cli
