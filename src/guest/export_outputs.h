// The output directories as one archive, read as root in the guest while nothing else runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"

namespace firestop::guest {

struct OutputsOutcome {
  uint32_t members = 0;  // files, folders and links in the archive
  std::string error;     // for people: which outputs are missing, and why; the archive holds the others
  std::vector<std::string> notes;  // what was left out and is no error: fifos, links that leave, other mounts
};

// `workspace` is the workspace root in this mount namespace. An output that has more than its max_bytes is
// left out whole. A directory that is gone is no error: there is nothing in it. The result is an error only
// when the sink's is.
Result<OutputsOutcome> export_outputs(const std::string& workspace,
                                      const std::vector<channel::OutputDirectory>& outputs,
                                      const std::function<Result<void>(std::string_view)>& sink);

}  // namespace firestop::guest
