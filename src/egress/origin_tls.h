// The client's side of TLS, towards origins: verified against the host's own store, and what the operator or
// a rule names besides. All of it is read before the process locks itself down.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/certificate_authority.h"
#include "egress/guard.h"
#include "http/tls_stream.h"

namespace firestop::egress {

// The host's certificates, PEM: SSL_CERT_FILE, or the first bundle that a distribution has, or the folder
// SSL_CERT_DIR. Error: "tls.no_trust".
Result<std::string> read_host_trust(
    const std::function<std::optional<std::string>(const char*)>& environment);

class OriginTls {
 public:
  static constexpr size_t kMostSessions = 256;      // kept for coming back to an origin
  static constexpr size_t kMostAuthorities = 4096;  // certificates of one text

  // `operators`: PEM that counts for every origin. One of the two may be empty. Error: "tls.bad_trust".
  static Result<std::unique_ptr<OriginTls>> make(std::string_view host_trust, std::string_view operators);
  ~OriginTls();  // after every connection of it
  OriginTls(const OriginTls&) = delete;
  OriginTls& operator=(const OriginTls&) = delete;

  // Whether the text is certificates: at least one, and nothing that is broken.
  static Result<void> check(std::string_view pem);

  // One connection: server name and verification of route.to.host, route.ca, ALPN's `protocols` (may be
  // empty), a session from before. TLS 1.2 at least. Error: "tls.bad_trust" for a route.ca that is none.
  Result<http::SslPtr> connect_tls(const Route& route, const std::vector<std::string>& protocols);

  size_t sessions() const { return sessions_.size(); }

 private:
  struct Session;
  using Certificates = std::vector<X509Ptr>;
  OriginTls() = default;
  static Result<Certificates> read(std::string_view pem);
  Result<http::SslContextPtr> make_context(const Certificates& extra);
  Result<SSL_CTX*> context_for(const std::string* ca);
  void keep_session(const std::string& key, SSL_SESSION* session);
  void use_session(const std::string& key, SSL* ssl);
  static int on_session(SSL* ssl, SSL_SESSION* session);

  Certificates trusted_;
  std::map<std::string, http::SslContextPtr> contexts_;  // by the rule's text, "" is without
  std::list<Session> sessions_;                          // the last given first
};

// What the guest is told when the origin's TLS fails (of TlsStream::handshake, or connect_tls).
Denial upstream_tls(const Route& route, const Error& error);

}  // namespace firestop::egress
