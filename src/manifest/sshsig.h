// The outside of an SSH signature: armor and envelope (OpenSSH, PROTOCOL.sshsig). Pure; who signed, and
// whether the signature is right, only ssh-keygen says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::manifest {

inline constexpr size_t kMaxSignature = 64u << 10;  // bytes of the armored file

// When a certificate is valid: from `after` on and before `before`, seconds since 1970.
struct CertificateTime {
  uint64_t after = 0, before = 0;
};

struct SshSignature {
  std::string blob;        // all of it, without armor
  std::string public_key;  // wire form; of a certificate, the whole certificate
  std::string key_type;    // "ssh-ed25519", "ssh-ed25519-cert-v01@openssh.com", ...
  std::string name_space;  // what it was made for
  std::string hash;        // "sha256" or "sha512"

  bool is_certificate() const;
  // Of a certificate of a type that is known (OpenSSH, PROTOCOL.certkeys). For messages: ssh-keygen judges.
  std::optional<CertificateTime> certificate_time() const;
  // The armor in one normal form, so that every reader of it sees the same blob.
  std::string armored() const;
};

// "signature.bad": not one armored signature of version 1, or something before, after or between its parts.
Result<SshSignature> parse_signature(std::string_view armored);

}  // namespace firestop::manifest
