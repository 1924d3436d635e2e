#include "sandbox/results.h"

#include <optional>

#include "base/file.h"
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

}  // namespace

std::string bundle_path(const OwnedRun& run, size_t repository) {
  return run.directory() + "/bundle-" + std::to_string(repository);
}

std::string archive_path(const OwnedRun& run) {
  return run.directory() + "/outputs.tar";
}

Result<void> import_results(const Plan& plan, OwnedRun& run, const SessionEnd& end,
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
  for (const auto& note : end.exported->notes) notes.push_back(note.text);
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

}  // namespace firestop::sandbox
