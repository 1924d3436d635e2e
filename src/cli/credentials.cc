#include "cli/commands.h"
#include "credentials/source_process.h"

namespace firestop::cli {

// Started by `firestop run` with a socket as descriptor 3; nobody else has a use for it.
CommandSpec credentials_command() {
  return {.name = "__credentials",
          .summary = "read the sources of credentials for a run",
          .description = "Says credentials' values over descriptor 3. Started by Firestop itself.",
          .handler = [](const ParsedArgs&, Context&) -> Result<int> {
            return credentials::source_main(credentials::kSourceFd);
          },
          .hidden = true};
}

}  // namespace firestop::cli
