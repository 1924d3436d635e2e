// A bundle from the guest becomes refs in the source repository, through a quarantine: a bare repository of
// its own, which at first has no alternates, so that no delta of the pack can be made against an object of
// the source that the guest only knows by name (a thin pack does not unpack here, and the export makes none).
//
// Every git that reads what came does it in a jail (quarantine.h). The source gets one pack, as a copy of
// files, and from update-ref two refs that did not exist.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "workspace/bundle_header.h"
#include "workspace/git.h"
#include "workspace/import_check.h"
#include "workspace/publish_pack.h"
#include "workspace/quarantine.h"
#include "workspace/workspace.h"

namespace firestop::workspace {
namespace {

constexpr uint64_t kSlack = 64u << 20;
constexpr std::chrono::minutes kTimeout(10);

std::string branch_of(const std::string& name) {
  return "refs/heads/agent/" + name;
}

Result<void> check_name(const RepoSource& source, const std::string& ref) {
  TRY_ASSIGN(const GitOutcome outcome, run_git(source.git_dir, {"check-ref-format", ref}));
  if (outcome.ok()) return {};
  return fail("import.bad_name", "'" + ref + "' is no name for a branch", "choose another name with --name");
}

// The pack behind the header, as far as it can be judged unread.
Result<void> check_pack_header(int fd, off_t offset, const ImportLimits& limits) {
  unsigned char header[12];
  if (::pread(fd, header, sizeof header, offset) != sizeof header)
    return fail("import.bad_bundle", "no pack in the bundle");
  const auto word = [&](size_t at) {
    return static_cast<uint32_t>(header[at]) << 24 | static_cast<uint32_t>(header[at + 1]) << 16 |
           static_cast<uint32_t>(header[at + 2]) << 8 | header[at + 3];
  };
  if (word(0) != 0x5041434b || word(4) != 2)
    return fail("import.bad_bundle", "no pack of version 2 in the bundle");
  if (word(8) > limits.max_files)
    return fail("import.too_large",
                "the bundle has " + std::to_string(word(8)) + " objects, more than " +
                    std::to_string(limits.max_files),
                "raise limits.result_files");
  return {};
}

// Unpacks every object that came, alone: nothing of the source is in reach yet.
Result<void> receive_pack(const Quarantine& quarantine, int bundle, const ImportLimits& limits) {
  GitLimits child;
  child.address_space = (2ull << 30) + 2 * limits.max_bytes;
  child.file_size = limits.max_bytes + kSlack;
  child.cpu_seconds = 300;
  child.timeout = kTimeout;
  TRY_ASSIGN(
      const GitOutcome outcome,
      run_git_on(quarantine.receiving(),
                 {"index-pack", "--stdin", "--max-input-size=" + std::to_string(limits.max_bytes + kSlack)},
                 bundle, -1, child));
  if (outcome.ok()) return {};
  return fail("import.bad_object", "git refuses the objects: " + last_words(outcome.error));
}

// What is reachable, no more, from the quarantine into the source.
Result<void> move_objects(const RepoSource& source, const Quarantine& quarantine, const std::string& tip,
                          const ImportLimits& limits) {
  TRY_ASSIGN(const UniqueFd wanted, temporary_input(tip + "\n^" + source.commit + "\n"));
  GitLimits child;
  child.timeout = kTimeout;
  child.file_size = 2 * limits.max_bytes + kSlack;
  child.cpu_seconds = 300;
  child.address_space = 8ull << 30;
  TRY_ASSIGN(const GitOutcome packed, run_git_on(quarantine.packing(),
                                                 {"pack-objects", "--revs", "--delta-base-offset", "-q",
                                                  join_path(quarantine.packed(), "pack")},
                                                 wanted.get(), -1, child));
  if (!packed.ok()) return fail("import.failed", "git pack-objects: " + last_words(packed.error));
  return publish_pack(quarantine.packed(), source.git_dir, child.file_size);
}

}  // namespace

Result<void> check_branch_free(const RepoSource& source, const std::string& name) {
  const std::string branch = branch_of(name);
  TRY(check_name(source, branch));
  TRY_ASSIGN(
      const std::string head,
      run_git(source.git_dir, {"symbolic-ref", "--quiet", "HEAD"}).map([](const auto& o) { return o.out; }));
  TRY_ASSIGN(const std::string refs,
             git_checked("import.failed", source.git_dir,
                         {"for-each-ref", "--count=1", "--format=%(refname)", branch}));
  if (!refs.empty() || head == branch + "\n")
    return fail("import.branch_exists",
                "the branch " + branch.substr(11) +
                    (refs == branch + "\n" || refs.empty() ? " exists" : "/... exists") + " in " +
                    source.git_dir,
                "choose another name with --name, or remove it: git branch -D " + branch.substr(11));
  // A branch "agent", or "agent/a" for the name "a/b", is in the way like a file of that name.
  for (size_t slash = branch.rfind('/'); slash > std::string("refs/heads").size();
       slash = branch.rfind('/', slash - 1)) {
    const std::string above = branch.substr(0, slash);
    TRY_ASSIGN(const GitOutcome found, run_git(source.git_dir, {"show-ref", "--verify", "--quiet", above}));
    if (found.ok())
      return fail("import.branch_exists",
                  "a branch named " + above.substr(11) + " is in the way of " + branch.substr(11),
                  "rename it: git branch -m " + above.substr(11) + " NEW");
  }
  return {};
}

Result<std::optional<ImportedBranch>> import_bundle(const RepoSource& source, const std::string& bundle_path,
                                                    const std::string& scratch_directory,
                                                    const std::string& run_id, const std::string& name,
                                                    const ImportLimits& limits) {
  TRY_ASSIGN(const UniqueFd bundle, open_file(bundle_path, O_RDONLY));
  struct stat status{};
  if (::fstat(bundle.get(), &status) != 0) return fail_errno("import.failed", bundle_path);
  if (status.st_size == 0) return std::optional<ImportedBranch>();
  if (static_cast<uint64_t>(status.st_size) > limits.max_bytes + kMaxBundleHeader)
    return fail("import.too_large", "the bundle has more than " + format_bytes(limits.max_bytes),
                "raise limits.result");
  std::string start(std::min<size_t>(kMaxBundleHeader, static_cast<size_t>(status.st_size)), '\0');
  const ssize_t n = ::pread(bundle.get(), start.data(), start.size(), 0);
  start.resize(n > 0 ? static_cast<size_t>(n) : 0);
  TRY_ASSIGN(const BundleHeader header, parse_bundle_header(start));
  if (header.object_format != source.object_format)
    return fail("import.bad_bundle",
                "objects of format " + header.object_format + " for a repository of " + source.object_format);
  if (header.tip == source.commit) return std::optional<ImportedBranch>();
  TRY(check_pack_header(bundle.get(), static_cast<off_t>(header.bytes), limits));
  TRY(check_branch_free(source, name));
  const std::string run_ref = "refs/firestop/" + run_id;
  TRY(check_name(source, run_ref));

  TRY_ASSIGN(const Quarantine quarantine, Quarantine::make(source, scratch_directory));
  if (::lseek(bundle.get(), static_cast<off_t>(header.bytes), SEEK_SET) < 0)
    return fail_errno("import.failed", bundle_path);
  TRY(receive_pack(quarantine, bundle.get(), limits));
  TRY_ASSIGN(const CheckedCommits checked, check_commits(source, quarantine, header.tip, limits));
  TRY(move_objects(source, quarantine, header.tip, limits));
  const std::string create =
      "create " + run_ref + " " + header.tip + "\ncreate " + branch_of(name) + " " + header.tip + "\n";
  TRY_ASSIGN(const UniqueFd commands, temporary_input(create));
  // This one must write in the source. Of the guest's it reads one commit, which fsck has seen.
  GitLimits limited;
  limited.address_space = 8ull << 30;
  limited.cpu_seconds = 60;
  limited.timeout = kTimeout;
  TRY_ASSIGN(const GitOutcome updated,
             run_git_on(source.git_dir, {"update-ref", "-m", "firestop: run " + run_id, "--stdin"},
                        commands.get(), -1, limited));
  if (!updated.ok())
    return fail("import.failed",
                "git update-ref: " + describe_status(updated.status) + ": " + last_words(updated.error));
  return std::optional<ImportedBranch>(
      {branch_of(name), header.tip, checked.new_commits, checked.uncommitted});
}

}  // namespace firestop::workspace
