// The authority of one sandbox: it signs certificates for the names that the guest connects to, so that TLS
// can be opened here. It exists for this process only; its key is in no file and in no other process. The
// guest trusts it, nobody else does; and it is bound to the policy's names, also for one who got it to sign
// others.
#pragma once

#include <openssl/x509.h>

#include <ctime>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/tls_stream.h"

namespace firestop::egress {

struct X509Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using X509Ptr = std::unique_ptr<X509, X509Free>;
using KeyPtr = std::unique_ptr<EVP_PKEY, X509Free>;

class CertificateAuthority {
 public:
  static constexpr size_t kMostLeaves = 512;  // certificates that are kept; made again in a fraction of a ms
  // Seconds. Guests' clocks may be behind; what was signed a day ago is worth nothing.
  static constexpr time_t kBackdated = 3600, kLeafLife = 24 * 3600, kRenewAfter = 12 * 3600;
  static constexpr time_t kAuthorityBackdated = 24 * 3600, kAuthorityLife = 90 * 24 * 3600;

  struct Settings {
    // Hosts of the policy's rules, wildcards too: names at and below them are the only ones it is good for
    // (RFC 5280 section 4.2.1.10). None: it is good for nothing.
    std::vector<std::string> hosts;
    std::function<time_t()> now = [] { return ::time(nullptr); };
  };
  // Error: "tls.authority".
  static Result<std::unique_ptr<CertificateAuthority>> make(Settings settings);
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  const std::string& certificate() const { return pem_; }  // the root's, PEM
  // Eight digits: its file's name in a folder of certificates, before ".0" (openssl-rehash(1)).
  std::string subject_hash() const;

  // The server's side of a connection that is meant for `host`, a canonical name: certificate with chain,
  // state, and `protocols` in the order of preference for ALPN. A client that offers others only is refused;
  // one that offers none has none. Error: "tls.authority" for what is no name.
  Result<http::SslPtr> accept_tls(const std::string& host, const std::vector<std::string>& protocols);

  // Certificates at hand.
  size_t leaves() const { return leaves_.size(); }

 private:
  struct Leaf {
    std::string host;
    X509Ptr certificate;
    time_t made = 0;
  };
  explicit CertificateAuthority(Settings settings);
  Result<void> make_authority();
  Result<X509Ptr> make_issuer(const std::string& name, EVP_PKEY* key, X509* issuer,
                              EVP_PKEY* issuer_key) const;
  Result<X509*> leaf_for(const std::string& host);
  Result<X509Ptr> sign_leaf(const std::string& host);

  const Settings settings_;
  KeyPtr key_, leaf_key_;
  X509Ptr root_, authority_;
  std::string pem_;
  http::SslContextPtr context_;
  std::list<Leaf> leaves_;  // the last used first
  std::map<std::string, std::list<Leaf>::iterator> by_host_;
};

}  // namespace firestop::egress
