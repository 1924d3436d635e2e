#include "sandbox/seal.h"

#include "base/digest.h"
#include "manifest/canonical.h"
#include "sandbox/host_config.h"
#include "sandbox/locking.h"

namespace firestop::sandbox {
namespace {

enum class Signature { kAskedFor, kNotAskedFor };

// Where a signature is asked for, a lock that does not match is a matter of what was signed.
Error refusal(Error error, Signature signature) {
  if (signature == Signature::kAskedFor && error.code.starts_with("lock.")) error.code = "signature.lock";
  return error;
}

}  // namespace

Result<Seal> check_seal(const manifest::Manifest& manifest, const std::string& allowed_signers) {
  TRY_ASSIGN(const HostConfig config, load_host_config());
  const bool asked = !allowed_signers.empty() || config.require_signature;
  const auto signature = asked ? Signature::kAskedFor : Signature::kNotAskedFor;
  if (config.require_signature && config.allowed_signers.empty() && allowed_signers.empty())
    return fail("signature.allowed_signers",
                "this host's configuration requires signatures and names no allowed_signers",
                "name the file in config.yaml, or with --allowed-signers FILE");

  Seal seal;
  auto lock = manifest::load_lock(manifest::lock_path(manifest.file));
  if (!lock) return tl::unexpected(refusal(lock.error(), signature));
  seal.lock = std::move(*lock);
  const auto* locked = seal.lock ? &*seal.lock : nullptr;
  TRY_ASSIGN(seal.canonical, manifest::canonical_json(manifest, locked));
  seal.digest = sha256_hex(seal.canonical);

  const std::string file = manifest::signature_path(manifest.file);
  if (config.require_signature && !config.allowed_signers.empty()) {
    TRY_ASSIGN(seal.signer, manifest::check_signature(manifest, locked, file, config.allowed_signers));
  }
  if (!allowed_signers.empty()) {
    TRY_ASSIGN(seal.signer, manifest::check_signature(manifest, locked, file, allowed_signers));
  }
  if (locked)
    if (auto matches = manifest::check_lock(manifest, *locked); !matches)
      return tl::unexpected(refusal(matches.error(), signature));
  return seal;
}

Result<workspace::RepoSource> Seal::resolve(const manifest::Manifest& manifest,
                                            const manifest::Entry& entry) const {
  if (!lock) return workspace::resolve_repository(manifest, entry);
  auto source = resolve_locked(manifest, entry, *lock);
  if (source) return source;
  return tl::unexpected(refusal(source.error(), signer ? Signature::kAskedFor : Signature::kNotAskedFor));
}

Result<void> Seal::check_image(const std::string& digest_of_image) const {
  if (!lock) return {};
  auto same = sandbox::check_image(*lock, digest_of_image);
  if (same) return {};
  return tl::unexpected(refusal(same.error(), signer ? Signature::kAskedFor : Signature::kNotAskedFor));
}

}  // namespace firestop::sandbox
