#include "sandbox/locking.h"

#include "image/image.h"

namespace firestop::sandbox {

using manifest::EntryType;
using manifest::Lock;

Result<Lock> make_lock(const manifest::Manifest& manifest,
                       const std::function<void(const std::string&)>& progress) {
  Lock lock;
  lock.presets = manifest.presets;
  for (const auto& entry : manifest.entries) {
    if (entry.type != EntryType::kGitRepo) continue;
    TRY_ASSIGN(auto source, workspace::resolve_repository(manifest, entry));
    lock.repositories[entry.path] = {entry.ref, std::move(source.commit), std::move(source.object_format)};
  }
  if (!manifest.image.recipe.empty()) {
    TRY_ASSIGN(auto image, image::ensure(manifest.image.recipe, progress));
    lock.recipe = manifest.image.recipe;
    lock.image_digest = std::move(image.digest);
  }
  return lock;
}

Result<workspace::RepoSource> resolve_locked(const manifest::Manifest& manifest, const manifest::Entry& entry,
                                             const Lock& lock) {
  const auto found = lock.repositories.find(entry.path);
  if (found == lock.repositories.end())
    return fail("lock.stale", entry.path + " is not in the lock", "lock again with: firestop lock");
  const auto& locked = found->second;
  auto pinned = entry;
  pinned.ref = locked.commit;
  auto source = workspace::resolve_repository(manifest, pinned);
  if (!source && source.error().code != "git.unknown_ref") return source;
  // A branch or tag may be named like the commit, and be another one.
  if (!source || source->commit != locked.commit || source->object_format != locked.object_format)
    return fail("lock.commit_missing",
                entry.path + ": the repository does not have the locked commit " + locked.commit,
                "fetch it, or lock again with: firestop lock");
  // The name is for people and for the guest's branch; a ref that is gone leaves a detached HEAD.
  source->ref = entry.ref;
  source->branch.clear();
  if (auto named = workspace::resolve_repository(manifest, entry)) source->branch = std::move(named->branch);
  return source;
}

Result<void> check_image(const Lock& lock, const std::string& digest) {
  if (lock.recipe.empty() || lock.image_digest == digest) return {};
  return fail("lock.image_changed",
              "the image " + lock.recipe + " is " + digest.substr(0, 12) + ", and locked is " +
                  lock.image_digest.substr(0, 12),
              "see `firestop image list`; what the new image has is locked with: firestop lock");
}

std::string describe_changes(const Lock& from, const Lock& to) {
  std::string out;
  const auto line = [&](const std::string& text) { out += (out.empty() ? "" : "\n") + text; };
  for (const auto& [path, repository] : from.repositories) {
    const auto other = to.repositories.find(path);
    if (other == to.repositories.end())
      line(path + ": no longer there");
    else if (other->second != repository)
      line(path + ": " + (repository.ref == other->second.ref ? "" : "'" + other->second.ref + "' ") +
           repository.commit.substr(0, 12) + " -> " + other->second.commit.substr(0, 12));
  }
  for (const auto& [path, repository] : to.repositories)
    if (!from.repositories.contains(path)) line(path + ": new, " + repository.commit.substr(0, 12));
  if (from.recipe != to.recipe || from.image_digest != to.image_digest)
    line("image: " + from.recipe + " " + from.image_digest.substr(0, 12) + " -> " + to.recipe + " " +
         to.image_digest.substr(0, 12));
  return out;
}

}  // namespace firestop::sandbox
