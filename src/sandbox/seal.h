// What a run is held to before anything is switched on: the manifest's lock, and who signed both.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "manifest/lock.h"
#include "manifest/manifest.h"
#include "manifest/signature.h"
#include "workspace/workspace.h"

namespace firestop::sandbox {

struct Seal {
  std::optional<manifest::Lock> lock;          // as it lies beside the manifest
  std::string canonical, digest;               // of manifest and lock; the digest names the run
  std::optional<manifest::VerifiedBy> signer;  // when a signature was asked for

  // The repository at its locked commit, or at its ref where there is no lock.
  Result<workspace::RepoSource> resolve(const manifest::Manifest& manifest,
                                        const manifest::Entry& entry) const;
  // Whether this is the locked image.
  Result<void> check_image(const std::string& digest_of_image) const;
};

// Reads lock and host configuration, and judges. A signature is asked for by `allowed_signers` (of the
// command line; "" if it names none) or by require_signature of the host's configuration; if by both, both
// must allow the signer. Errors: "config.*"; "signature.*" for everything that is refused when a signature is
// asked for, the lock that does not match included ("signature.lock"); else "lock.*".
Result<Seal> check_seal(const manifest::Manifest& manifest, const std::string& allowed_signers);

}  // namespace firestop::sandbox
