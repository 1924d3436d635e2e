#include "guest/export.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "codec/frame.h"
#include "guest/export_outputs.h"
#include "guest/export_repository.h"

namespace firestop::guest {
namespace {

constexpr size_t kMostNotes = 40;  // in all, so that the answer stays one frame

void add_notes(channel::Exported& exported, const std::string& what, const std::vector<std::string>& notes) {
  for (const auto& note : notes)
    if (exported.notes.size() < kMostNotes) exported.notes.push_back({what + ": " + note.substr(0, 500)});
}

// All of it or nothing; the host keeps what it has then.
Result<void> export_memory(const ExportPlan& plan, const ExportSink& sink, channel::Exported& exported) {
  for (const auto& memory : plan.memory) {
    const auto data = [&](std::string_view bytes) { return sink.data(channel::kMemoryStream, bytes); };
    TRY_ASSIGN(const OutputsOutcome outcome,
               export_outputs(plan.workspace, {{memory.path, memory.max_bytes}}, data));
    add_notes(exported, "memory", outcome.notes);
    exported.memory_error = outcome.error;
    if (outcome.error.empty() && outcome.members == 0) exported.memory_error = memory.path + " is gone";
    if (outcome.error.empty() && outcome.members > uint64_t{memory.max_files} + 1)
      exported.memory_error = memory.path + ": " + std::to_string(outcome.members - 1) +
                              " files, more than " + std::to_string(memory.max_files);
    TRY(sink.end(channel::kMemoryStream));
  }
  return {};
}

ExportSink frames_to(int fd) {
  const auto write = [fd](codec::FrameType type, uint16_t stream, std::string_view payload) {
    std::string frame;
    codec::append_frame(frame, type, stream, payload);
    return write_all(fd, frame);
  };
  return {[write](uint16_t stream, std::string_view data) {
            return write(codec::FrameType::kData, stream, data);
          },
          [write](uint16_t stream) { return write(codec::FrameType::kEnd, stream, {}); }};
}

}  // namespace

Result<channel::Exported> run_export(const ExportPlan& plan, const StartInContainer& start,
                                     const ExportSink& sink) {
  channel::Exported exported;
  for (size_t i = 0; i < plan.repositories.size(); ++i) {
    const uint16_t stream = static_cast<uint16_t>(channel::kFirstBundleStream + i);
    channel::Exported::Repository nothing;
    nothing.path = plan.repositories[i].path;
    exported.repositories.push_back(nothing);
    if (plan.with_repositories) {
      const auto data = [&](std::string_view bytes) { return sink.data(stream, bytes); };
      TRY_ASSIGN(RepositoryOutcome outcome, export_repository(plan, plan.repositories[i], start, data));
      add_notes(exported, plan.repositories[i].path, outcome.notes);
      exported.repositories.back() = std::move(outcome.repository);
    }
    TRY(sink.end(stream));
  }
  if (plan.with_outputs && !plan.outputs.empty()) {
    const auto data = [&](std::string_view bytes) { return sink.data(channel::kOutputsStream, bytes); };
    TRY_ASSIGN(const OutputsOutcome outcome, export_outputs(plan.workspace, plan.outputs, data));
    add_notes(exported, "outputs", outcome.notes);
    exported.output_files = outcome.members;
    exported.outputs_error = outcome.error;
  }
  TRY(sink.end(channel::kOutputsStream));
  TRY(export_memory(plan, sink, exported));
  return exported;
}

Result<RunningExport> start_export(const ExportPlan& plan, const StartInContainer& start) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("export.start", "cannot make a pipe");
  RunningExport running;
  running.frames.reset(ends[0]);
  const UniqueFd write_end(ends[1]);
  running.pid = ::fork();
  if (running.pid < 0) return fail_errno("export.start", "cannot fork");
  if (running.pid > 0) return running;
  running.frames.reset();
  // PID 1's ways with signals and children are not ours.
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const auto exported = run_export(plan, start, frames_to(write_end.get()));
  if (!exported) ::_exit(1);
  const auto message = channel::encode(channel::FromGuest(*exported));
  if (!message) ::_exit(1);
  std::string frame;
  codec::append_frame(frame, codec::FrameType::kControl, 0, *message);
  ::_exit(write_all(write_end.get(), frame) ? 0 : 1);
}

}  // namespace firestop::guest
