// Bringing results back: git bundles of what the agent committed or left uncommitted, and one pax archive of
// the output directories. Runs after every process of the container is gone, in a forked child of PID 1, so
// that nothing the agent left behind (a broken repository, a million files, a full disk) can stop PID 1.
// Memory is bounded by fixed buffers; time and bytes by the plan.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "channel/messages.h"

namespace firestop::guest {

// A command in a fresh container as the run's account, with the same view of /workspace as the agent had.
struct ContainerCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;          // "NAME=value", all of it
  std::string directory;                         // working directory inside, absolute
  std::vector<std::pair<int, int>> descriptors;  // {ours, number inside}; 0, 1, 2 not named are /dev/null
};
// Starts it. The process id is a child of the caller (waitpid gives the command's status), and SIGKILL to it
// ends every process of that container.
using StartInContainer = std::function<Result<pid_t>(const ContainerCommand&)>;

struct ExportPlan {
  std::vector<channel::RepositoryMount> repositories;  // bundles on streams kFirstBundleStream + index
  std::vector<channel::OutputDirectory> outputs;  // one archive on kOutputsStream; empty: stream ends at once
  std::vector<channel::MemoryDirectory> memory;   // its archive on kMemoryStream, which is there with it only
  std::string workspace;                          // the workspace root as PID 1 sees it
  std::string workspace_inside = "/workspace";    // and as the container sees it
  bool with_repositories = true, with_outputs = true;    // of channel::Export; memory comes with outputs
  std::chrono::milliseconds repository_timeout{240000};  // for each repository, then its error says so
  uint64_t bundle_max = 4ull << 30;                      // bytes of one bundle, then its error says so
};

// Where the bytes go. A callback may block (back-pressure); an error ends the export.
struct ExportSink {
  std::function<Result<void>(uint16_t stream, std::string_view data)> data;  // 1 to 65536 bytes
  std::function<Result<void>(uint16_t stream)> end;
};

// Sends every stream in turn, each with its end, and says what was in them. Blocking. An error is one of the
// sink only: what goes wrong with a repository or an output stands in the answer.
Result<channel::Exported> run_export(const ExportPlan& plan, const StartInContainer& start,
                                     const ExportSink& sink);

// For PID 1: forks a child that runs run_export() and writes codec frames (codec/frame.h) to a pipe: kData
// and kEnd frames of the streams above, then one kControl frame with channel::encode(Exported), then end of
// file. Read `frames` only as fast as the channel takes it. End of file without the control frame: the export
// died.
struct RunningExport {
  pid_t pid = -1;   // reap it
  UniqueFd frames;  // read end, close-on-exec, blocking
};
Result<RunningExport> start_export(const ExportPlan& plan, const StartInContainer& start);

}  // namespace firestop::guest
