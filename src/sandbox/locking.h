// What the names in a manifest stand for on this host, now: made into a lock, and a run held to one.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "manifest/lock.h"
#include "manifest/manifest.h"
#include "workspace/workspace.h"

namespace firestop::sandbox {

// Resolves every ref and finds the image, building it if there is none yet. Errors: those of
// workspace::resolve_repository and image::ensure.
Result<manifest::Lock> make_lock(const manifest::Manifest& manifest,
                                 const std::function<void(const std::string&)>& progress);

// As workspace::resolve_repository, but at the locked commit; the guest stands on the declared branch if that
// is still one. "lock.commit_missing" if the repository does not have the commit, "lock.stale" if the lock
// does not have the entry.
Result<workspace::RepoSource> resolve_locked(const manifest::Manifest& manifest, const manifest::Entry& entry,
                                             const manifest::Lock& lock);

// "lock.image_changed" unless `digest` is the locked one (or the lock has no image).
Result<void> check_image(const manifest::Lock& lock, const std::string& digest);

// What differs between two locks, a line each; empty if nothing does.
std::string describe_changes(const manifest::Lock& from, const manifest::Lock& to);

}  // namespace firestop::sandbox
