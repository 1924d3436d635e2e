#include "sandbox/results.h"

#include <time.h>

#include <optional>

#include "base/file.h"
#include "base/path.h"
#include "base/units.h"

namespace firestop::sandbox {
namespace {

class FirstError {
 public:
  explicit FirstError(std::vector<std::string>& notes) : notes_(notes) {}
  void add(Error error) {
    if (first_)
      notes_.push_back(std::move(error.message));
    else
      first_ = std::move(error);
  }
  Result<void> result() const {
    if (first_) return Unexpected(*first_);
    return {};
  }

 private:
  std::vector<std::string>& notes_;
  std::optional<Error> first_;
};

Result<void> import_branch(const Plan& plan, OwnedRun& run, size_t i,
                           const channel::Exported::Repository& exported,
                           const workspace::ImportLimits& limits) {
  const auto& source = plan.repositories[i];
  if (!exported.error.empty())
    return fail("result.export",
                source.entry + ": the sandbox could not hand over its commits: " + exported.error,
                "see the run's branch state with --keep, or commit inside the sandbox");
  if (!exported.changed) return {};
  TRY_ASSIGN(auto branch, workspace::import_bundle(source, bundle_path(run, i),
                                                   run.directory() + "/import-" + std::to_string(i),
                                                   run.record().id, plan.name, limits));
  if (!branch) return {};
  RunRecord::Branch entry;
  entry.entry = source.entry;
  entry.repository = source.git_dir;
  entry.ref = branch->ref;
  entry.commit = branch->commit;
  entry.new_commits = branch->new_commits;
  entry.uncommitted = exported.uncommitted;
  run.record().branches.push_back(std::move(entry));
  return {};
}

Result<void> import_outputs(const Plan& plan, OwnedRun& run, const channel::Exported& exported,
                            const workspace::ImportLimits& limits) {
  if (!exported.outputs_error.empty())
    return fail("result.export", "the sandbox could not hand over its outputs: " + exported.outputs_error);
  if (exported.output_files == 0) return {};
  TRY_ASSIGN(const auto files, workspace::import_archive(archive_path(run), plan.out_directory, limits));
  run.record().outputs_directory = plan.out_directory;
  run.record().output_files = files.files;
  run.record().output_bytes = files.bytes;
  return {};
}

Result<MemoryRecord> keep_memory(const Plan& plan, OwnedRun& run, const SessionEnd& end,
                                 OwnedMemory& memory) {
  if (end.memory_too_large) return fail("memory.too_large", "the sandbox handed over more than can be kept");
  if (!end.exported)
    return fail("memory.missing",
                "the sandbox did not hand it over" + (end.error ? ": " + end.error->message : std::string()));
  if (!end.exported->memory_error.empty()) return fail("memory.export", end.exported->memory_error);
  MemoryRecord record;
  record.run = run.record().id;
  record.manifest_file = join_path(plan.manifest.folder, file_name(plan.manifest.file));
  record.kept_ms = static_cast<int64_t>(::time(nullptr)) * 1000;
  return memory.keep(memory_archive_path(run), run.directory(), memory_cap(plan.manifest), std::move(record));
}

// One code for all that can go wrong: what was kept before stays, and that is said.
Result<void> import_memory(const Plan& plan, OwnedRun& run, const SessionEnd& end, OwnedMemory& memory) {
  auto& told = run.record().memory;
  const auto kept = keep_memory(plan, run, end, memory);
  if (kept) {
    told = {memory.name(), true, kept->files, kept->bytes, ""};
    return {};
  }
  told.message = kept.error().message;
  const auto& limits = plan.manifest.limits;
  return fail("memory.not_kept",
              "the memory directory is not kept, what was kept before stays: " + kept.error().message,
              "limits.memory_directory is " + format_bytes(limits.memory_directory) +
                  ", limits.memory_files " + std::to_string(limits.memory_files) +
                  "; files, folders and links that stay inside can be kept");
}

Result<void> import_outcome(const Plan& plan, OwnedRun& run, const SessionEnd& end,
                            std::vector<std::string>& notes) {
  if (plan.repositories.empty() && !plan.has_outputs) return {};
  if (end.result_too_large)
    return fail(
        "result.too_large",
        "what came back is larger than limits.result (" + format_bytes(plan.manifest.limits.result) + ")",
        "raise limits.result, or let the sandbox leave less behind");
  if (!end.exported)
    return fail("result.missing",
                "the sandbox handed nothing over" + (end.error ? ": " + end.error->message : std::string()));
  const auto& limits = plan.manifest.limits;
  const workspace::ImportLimits bounds{limits.result, limits.result_files};
  FirstError errors(notes);
  for (size_t i = 0; i < plan.repositories.size(); ++i)
    if (auto ok = import_branch(plan, run, i, end.exported->repositories[i], bounds); !ok)
      errors.add(ok.error());
  if (plan.has_outputs)
    if (auto ok = import_outputs(plan, run, *end.exported, bounds); !ok) errors.add(ok.error());
  return errors.result();
}

}  // namespace

std::string bundle_path(const OwnedRun& run, size_t repository) {
  return run.directory() + "/bundle-" + std::to_string(repository);
}

std::string archive_path(const OwnedRun& run) {
  return run.directory() + "/outputs.tar";
}

std::string memory_archive_path(const OwnedRun& run) {
  return run.directory() + "/memory.tar";
}

workspace::MemoryCap memory_cap(const manifest::Manifest& manifest) {
  return {manifest.limits.memory_directory, manifest.limits.memory_files};
}

uint64_t memory_archive_limit(const workspace::MemoryCap& most) {
  constexpr uint64_t kMostOfMember = 12u << 10;  // its headers with a longest name and target, its padding
  return most.bytes + (uint64_t{most.files} + 1) * kMostOfMember + (64u << 10);
}

Result<void> import_results(const Plan& plan, OwnedRun& run, const SessionEnd& end, OwnedMemory& memory,
                            std::vector<std::string>& notes) {
  if (end.exported)
    for (const auto& note : end.exported->notes) notes.push_back(note.text);
  FirstError errors(notes);
  if (auto ok = import_outcome(plan, run, end, notes); !ok) errors.add(ok.error());
  if (memory.valid())
    if (auto ok = import_memory(plan, run, end, memory); !ok) errors.add(ok.error());
  return errors.result();
}

}  // namespace firestop::sandbox
