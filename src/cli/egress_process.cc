#include "cli/commands.h"
#include "egress/process.h"

namespace firestop::cli {

CommandSpec egress_process_command() {
  return {
      .name = "__egress",
      .summary = "a sandbox's network process",
      .description = "Started by `firestop run`, with descriptors that nobody else has.",
      .handler = [](const ParsedArgs&, Context&) -> Result<int> { return egress::process_main(); },
      .hidden = true,
  };
}

}  // namespace firestop::cli
