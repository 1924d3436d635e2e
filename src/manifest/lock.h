// firestop.lock: what the names in a manifest stood for when it was locked. A plain value; src/sandbox finds
// out what names stand for, and holds a run to it.
//
//   {"firestop_lock": 1,
//    "image": {"recipe": "agent-base", "digest": "sha256:..."},
//    "repositories": {"repo": {"ref": "main", "commit": "...", "object_format": "sha1"}},
//    "presets": {"npm": "sha256:..."}}
//
// `presets` is left out where the manifest names none.
// `image` is null for an image of a registry, whose digest is in the manifest already.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/json.h"
#include "manifest/manifest.h"

namespace firestop::manifest {

struct Lock {
  struct Repository {
    std::string ref;            // as in the manifest; "" means HEAD
    std::string commit;         // full hex object id
    std::string object_format;  // "sha1" or "sha256"
    bool operator==(const Repository&) const = default;
  };
  std::map<std::string, Repository> repositories;  // by path of the entry
  std::string recipe, image_digest;                // both or neither; the digest is 64 hex digits
  std::map<std::string, std::string> presets;      // by name: SHA-256 of the text, 64 hex digits

  bool operator==(const Lock&) const = default;
  codec::Json to_json() const;
  std::string to_text() const;  // as it is written to the file
};

// The lock's place: firestop.lock beside a manifest that is named firestop.yaml, .yml or .json, NAME.lock
// beside any other.
std::string lock_path(const std::string& manifest_file);

// Strict: unknown, missing and repeated keys, other types and anything that is no commit, ref, path or digest
// are errors ("lock.bad"), as is a later version ("lock.newer_version"). At most 1 MiB.
Result<Lock> parse_lock(std::string_view text, const std::string& file);
// nullopt if there is no such file; "lock.unreadable" if it cannot be read.
Result<std::optional<Lock>> load_lock(const std::string& path);

// Whether the lock is one of this manifest: the same repositories with the same refs, the same image.
// "lock.stale" names every difference.
Result<void> check_lock(const Manifest& manifest, const Lock& lock);

}  // namespace firestop::manifest
