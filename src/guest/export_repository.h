// One repository's new commits as a bundle.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"
#include "guest/export.h"

namespace firestop::guest {

struct RepositoryOutcome {
  channel::Exported::Repository repository;
  std::vector<std::string>
      notes;  // what stays behind and is no error: other branches, stashes, nested repositories
};

// git runs in a container as the agent's account, because everything in .git may be made to run a program or
// to never end: then that harms the container only, and this function ends it at the plan's bounds. The
// result is an error only when the sink's is.
Result<RepositoryOutcome> export_repository(const ExportPlan& plan,
                                            const channel::RepositoryMount& repository,
                                            const StartInContainer& start,
                                            const std::function<Result<void>(std::string_view)>& sink);

}  // namespace firestop::guest
