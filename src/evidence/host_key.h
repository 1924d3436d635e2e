// The key that this host signs records with: Ed25519 (RFC 8032), PKCS#8 PEM, 0600, so that `openssl` reads
// it, made on first use in $XDG_CONFIG_HOME/firestop/evidence-key.pem (its public half beside it,
// evidence-key.pub.pem).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::evidence {

class PublicKey {
 public:
  const std::string& id() const { return id_; }    // SHA-256 of the DER SubjectPublicKeyInfo, hexadecimal
  const std::string& pem() const { return pem_; }  // SubjectPublicKeyInfo
  bool verifies(std::string_view message, std::string_view signature) const;
  static Result<PublicKey> from_pem(std::string_view pem);  // "evidence.bad_key"
  // One or more in a file, for --signers. "evidence.bad_key", "file.*".
  static Result<std::vector<PublicKey>> load(const std::string& path);
  // 32 bytes, as in RFC 8032. Keys of small order are refused: they verify what nobody signed.
  static Result<PublicKey> from_raw(std::string bytes);

 private:
  std::string raw_, id_, pem_;
};

class HostKey {
 public:
  // Makes it if there is none. "evidence.bad_key" for one that others can read or that is none.
  static Result<HostKey> load_or_make(const std::string& config_directory);
  HostKey(HostKey&&) noexcept;
  HostKey& operator=(HostKey&&) noexcept;
  ~HostKey();                                        // wipes
  std::string sign(std::string_view message) const;  // 64 bytes
  const PublicKey& public_key() const;

 private:
  HostKey();
  struct State;
  std::unique_ptr<State> state_;
};

std::string private_key_path(const std::string& config_directory);
std::string public_key_path(const std::string& config_directory);

}  // namespace firestop::evidence
