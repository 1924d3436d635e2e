// What a sandbox works on: read-only images made from repositories and folders, and its own disk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "manifest/manifest.h"

namespace firestop::workspace {

// A repository of the host, found and checked before anything starts.
struct RepoSource {
  std::string entry;          // path of the manifest's entry
  std::string git_dir;        // absolute; where refs are written (the common directory of a linked worktree)
  std::string name;           // for `origin`: the declared source's name, no path of the host
  std::string ref;            // as declared; "" means HEAD
  std::string branch;         // branch to stand on in the guest ("main"); "" means detached
  std::string commit;         // full hex object id
  std::string object_format;  // "sha1" or "sha256"
  bool shallow_source = false;
  std::optional<uint32_t> depth;
};
// Resolves a git_repo entry: odd repositories (linked worktree, bare, submodule, shallow, sha256) work or are
// refused with a clear error ("git.not_a_repository", "git.no_commits", "git.unknown_ref", ...).
Result<RepoSource> resolve_repository(const manifest::Manifest& manifest, const manifest::Entry& entry);

// Who owns what in the guest.
struct Owner {
  uint32_t uid = 1000, gid = 1000;
};

// The EROFS image of a repository at its commit: working files, .git with objects, index, HEAD and config, as
// the guest will see them. Kept in the cache by commit, depth, owner, branch and format version. The index
// holds the inode numbers, times and owners of the image, so that `git status` has nothing to read.
Result<std::string> repository_image(const RepoSource& source, const Owner& owner);

// Numbers in the guest: account n has uid and gid 1000 + n, declared group n has gid 2000 + n. A name that is
// no declared group is an account's own group.
inline constexpr uint32_t kFirstGroup = 2000;
uint32_t gid_of(const manifest::Manifest& manifest, const std::string& group);

// A regular file that an image was made with; one of several names counts as several.
struct PackedFile {
  std::string path;  // in the image
  uint64_t size = 0;
  std::string digest;  // SHA-256 of the very bytes that were written
};

// The EROFS image with all file, dir, local_file and local_dir entries below the workspace root; written to
// `path`. `binds` maps the names of --bind to host paths. Links must stay inside their source; devices,
// sockets and fifos are errors that name the path. Repositories and mounts are there as empty folders to
// mount on. `permissions` are those of the entry itself, `owner` and `group` of all that its source brings.
Result<std::vector<PackedFile>> write_entries_image(const manifest::Manifest& manifest,
                                                    const std::map<std::string, std::string>& binds,
                                                    const std::string& path);
// The image of a mount entry: the folder's content as it is, owned by `owner`, written to `path`.
Result<std::vector<PackedFile>> write_mount_image(const std::string& source_folder, const Owner& owner,
                                                  const std::string& path);

// The image of all skills, each a folder by its name, as mounts have them; and what a name of --bind means.
Result<std::vector<PackedFile>> write_skills_image(const manifest::Manifest& manifest,
                                                   const std::map<std::string, std::string>& binds,
                                                   const std::string& path);
// The image of what a memory directory holds; `folder` may be "": nothing. "entries.too_large" beyond `most`,
// which does not count the folder itself.
struct MemoryCap {
  uint64_t bytes = 0;
  uint32_t files = 0;  // and folders, links
};
Result<std::vector<PackedFile>> write_memory_image(const std::string& folder, const Owner& owner,
                                                   const MemoryCap& most, const std::string& path);

// A fresh ext4 of `bytes` at `path`, sparse. Copied from a template in the cache.
Result<void> make_scratch_disk(const std::string& path, uint64_t bytes);

// Result import. Everything in it came from the guest and is hostile.
struct ImportLimits {
  uint64_t max_bytes = 0;  // unpacked, all objects together
  uint32_t max_files = 0;
  // Of an archive's files and folders: permission bits as they are, or so that we can read and remove them.
  enum class Modes { kAsTheyAre, kOpenToUs } modes = Modes::kAsTheyAre;
};
struct ImportedBranch {
  std::string ref;  // "refs/heads/agent/NAME"
  std::string commit;
  uint32_t new_commits = 0;
  bool uncommitted = false;  // the last commit holds what was left uncommitted
};
// Whether refs/heads/agent/NAME could be made now; an error that says why not.
Result<void> check_branch_free(const RepoSource& source, const std::string& name);
// `bundle_path` is a git bundle (or an empty file: nothing new; then nullopt). Checks every object in a
// quarantine (index-pack --strict, fsck, size and count, connectivity with the base commit only), then
// fetches into the source repository as refs/firestop/RUN and refs/heads/agent/NAME. HEAD, index, working
// tree, configuration and hooks of the source are not touched.
Result<std::optional<ImportedBranch>> import_bundle(const RepoSource& source, const std::string& bundle_path,
                                                    const std::string& scratch_directory,
                                                    const std::string& run_id, const std::string& name,
                                                    const ImportLimits& limits);

struct ImportedFiles {
  uint32_t files = 0;
  uint64_t bytes = 0;
};
// `tar_path` is a pax archive; unpacked into the new directory `destination` (must not exist) with
// openat2(RESOLVE_BENEATH); no absolute names, "..", links out, hard links out, devices, fifos, setuid bits;
// on any fault nothing is left behind and the error names the member. Without members nothing is made. A link
// may not leave the first folder of its path (its output).
Result<ImportedFiles> import_archive(const std::string& tar_path, const std::string& destination,
                                     const ImportLimits& limits);

}  // namespace firestop::workspace
