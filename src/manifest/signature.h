// SSH signatures on manifests (namespace "firestop-manifest"), made and judged by ssh-keygen(1), so that the
// keys, agents, hardware tokens, certificates and allowed_signers files that people have do what they do
// elsewhere. It runs as a child with an environment of its own, on bounded copies of what was read once.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "manifest/lock.h"
#include "manifest/manifest.h"
#include "manifest/sshsig.h"

namespace firestop::manifest {

inline constexpr const char* kSignatureNamespace = "firestop-manifest";
inline constexpr size_t kMaxAllowedSigners = 1u << 20;  // bytes

// Who vouches for a manifest.
struct VerifiedBy {
  std::string principal;    // as allowed_signers names the signer; may be a pattern ("*@example.com")
  std::string key_type;     // "ssh-ed25519", ...
  std::string fingerprint;  // "SHA256:...", of a certificate that of its key
};

// The armored signature of `canonical` by the key in `key_file`: a private key, or a public key or
// certificate whose private key an agent ($SSH_AUTH_SOCK) or the file beside it holds. May ask for a
// passphrase or a touch on the terminal, and then waits. Errors: "sign.no_key", "sign.failed".
Result<std::string> sign(std::string_view canonical, const std::string& key_file);

// Whether `armored` is a signature of `canonical` by somebody whom `allowed_signers` (the file's text; `file`
// is its name for messages) allows to sign manifests now. With `identity` it must be that principal.
// Errors, all refusals: "signature.bad", "signature.namespace", "signature.changed" (made for other bytes),
// "signature.expired", "signature.not_yet_valid", "signature.unknown_signer", "signature.cannot_check".
Result<VerifiedBy> verify(std::string_view canonical, std::string_view armored,
                          std::string_view allowed_signers, const std::string& file,
                          const std::string& identity = {});

std::string signature_path(const std::string& manifest_file);  // FILE.sig

// The whole question for one manifest: reads both files, and holds the signature against manifest and lock.
// Errors: those of verify(), "signature.missing", "signature.unreadable", "signature.allowed_signers".
Result<VerifiedBy> check_signature(const Manifest& manifest, const Lock* lock,
                                   const std::string& signature_file, const std::string& allowed_signers_file,
                                   const std::string& identity = {});

}  // namespace firestop::manifest
