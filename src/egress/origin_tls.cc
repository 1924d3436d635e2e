#include "egress/origin_tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "codec/address.h"
#include "egress/alpn.h"
#include "egress/codes.h"

namespace firestop::egress {
namespace {

constexpr uint64_t kMostTrustBytes = 16u << 20;
constexpr size_t kMostTrustFiles = 4096;
constexpr const char* kBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",  // openSUSE
    "/etc/ssl/cert.pem",       // Alpine
};
constexpr const char* kFolder = "/etc/ssl/certs";
constexpr std::string_view kBegin = "-----BEGIN ";

Result<std::string> read_folder(const std::string& folder) {
  std::string out;
  std::error_code error;
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension();
    if (extension != ".pem" && extension != ".crt" && extension != ".0") continue;
    if (++files > kMostTrustFiles) return fail("tls.no_trust", folder + " has more files than can be read");
    const auto text = read_file(entry.path(), kMostTrustBytes);
    if (text && text->find(kBegin) != std::string::npos) out += *text + "\n";
    if (out.size() > kMostTrustBytes)
      return fail("tls.no_trust", folder + " has more bytes than can be read");
  }
  if (out.empty()) return fail("tls.no_trust", folder + " has no certificates");
  return out;
}

// Where a connection keeps its session's key.
int key_index() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* data, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<std::string*>(data); });
  return index;
}
int owner_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

}  // namespace

Result<std::string> read_host_trust(
    const std::function<std::optional<std::string>(const char*)>& environment) {
  if (const auto file = environment("SSL_CERT_FILE"); file && !file->empty()) {
    auto text = read_file(*file, kMostTrustBytes);
    if (!text) return wrap(text.error(), "SSL_CERT_FILE of the host");
    return text;
  }
  if (const auto folder = environment("SSL_CERT_DIR"); folder && !folder->empty())
    return read_folder(*folder);
  for (const char* bundle : kBundles)
    if (auto text = read_file(bundle, kMostTrustBytes); text && !text->empty()) return text;
  if (auto text = read_folder(kFolder)) return text;
  return fail("tls.no_trust",
              "this host has no certificates of authorities, so that no origin can be verified",
              "install the package ca-certificates, or set SSL_CERT_FILE");
}

struct OriginTls::Session {
  std::string key;
  SSL_SESSION* session;
};

OriginTls::~OriginTls() {
  for (const Session& one : sessions_) SSL_SESSION_free(one.session);
}

Result<std::unique_ptr<OriginTls>> OriginTls::make(std::string_view host_trust, std::string_view operators) {
  std::unique_ptr<OriginTls> tls(new OriginTls);
  if (!host_trust.empty() || operators.empty()) {
    TRY_ASSIGN(tls->trusted_, read(host_trust));
  }
  if (!operators.empty()) {
    TRY_ASSIGN(Certificates more, read(operators));
    for (X509Ptr& one : more) tls->trusted_.push_back(std::move(one));
  }
  TRY(tls->context_for(nullptr));
  return tls;
}

Result<void> OriginTls::check(std::string_view pem) {
  TRY(read(pem));
  return {};
}

Result<OriginTls::Certificates> OriginTls::read(std::string_view pem) {
  Certificates out;
  if (pem.size() > kMostTrustBytes) return fail("tls.bad_trust", "too many bytes of certificates");
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  if (!bio) return fail("tls.bad_trust", "no memory for certificates");
  while (out.size() <= kMostAuthorities) {
    X509Ptr one(PEM_read_bio_X509_AUX(bio, nullptr, nullptr, nullptr));
    if (!one) break;
    out.push_back(std::move(one));
  }
  BIO_free(bio);
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  ERR_clear_error();
  if (out.size() > kMostAuthorities) return fail("tls.bad_trust", "too many certificates");
  if (reason != PEM_R_NO_START_LINE)
    return fail("tls.bad_trust", "certificate " + std::to_string(out.size() + 1) + " is broken");
  if (out.empty())
    return fail("tls.bad_trust", "no certificate in PEM form", "expected -----BEGIN CERTIFICATE-----");
  return out;
}

Result<http::SslContextPtr> OriginTls::make_context(const Certificates& extra) {
  http::SslContextPtr context = http::make_tls_context(TLS_client_method());
  X509_STORE* const store = SSL_CTX_get_cert_store(context.get());
  for (const Certificates* list : {const_cast<const Certificates*>(&trusted_), &extra})
    for (const X509Ptr& one : *list)
      if (X509_STORE_add_cert(store, one.get()) != 1)
        return fail("tls.bad_trust", "a certificate cannot be used");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  X509_VERIFY_PARAM* const verify = SSL_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // Whoever names a certificate means it, also when it is no root.
  X509_VERIFY_PARAM_set_flags(verify, X509_V_FLAG_PARTIAL_CHAIN);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_set_ex_data(context.get(), owner_index(), this);
  SSL_CTX_sess_set_new_cb(context.get(), on_session);
  return context;
}

Result<SSL_CTX*> OriginTls::context_for(const std::string* ca) {
  const std::string key = ca ? *ca : std::string();
  if (const auto found = contexts_.find(key); found != contexts_.end()) return found->second.get();
  Certificates extra;
  if (!key.empty()) {
    TRY_ASSIGN(extra, read(key));
  }
  TRY_ASSIGN(http::SslContextPtr context, make_context(extra));
  return contexts_.emplace(key, std::move(context)).first->second.get();
}

Result<http::SslPtr> OriginTls::connect_tls(const Route& route, const std::vector<std::string>& protocols) {
  TRY_ASSIGN(SSL_CTX* const context, context_for(route.ca.get()));
  http::SslPtr ssl(SSL_new(context));
  if (!ssl) return fail("tls.bad_trust", "no memory for a connection");
  const std::string& host = route.to.host;
  bool ok = true;
  if (codec::Address::parse(host)) {
    ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str()) == 1;
  } else {
    ok =
        SSL_set_tlsext_host_name(ssl.get(), host.c_str()) == 1 && SSL_set1_host(ssl.get(), host.c_str()) == 1;
  }
  const std::string alpn = alpn_wire(protocols);
  if (!alpn.empty())
    ok = ok && SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                                   static_cast<unsigned>(alpn.size())) == 0;
  // A session is good for who was verified by the same certificates, under the same name.
  auto key = std::make_unique<std::string>(http::to_string(route.to, 0) + "\n" + (route.ca ? *route.ca : ""));
  use_session(*key, ssl.get());
  ok = ok && SSL_set_ex_data(ssl.get(), key_index(), key.get()) == 1;
  if (!ok) return fail("tls.handshake", "the connection to " + host + " cannot be prepared");
  [[maybe_unused]] const auto* const the_connections = key.release();
  SSL_set_connect_state(ssl.get());
  return ssl;
}

int OriginTls::on_session(SSL* ssl, SSL_SESSION* session) {
  auto* const self = static_cast<OriginTls*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), owner_index()));
  const auto* const key = static_cast<const std::string*>(SSL_get_ex_data(ssl, key_index()));
  if (!self || !key) return 0;
  self->keep_session(*key, session);
  return 1;  // it is ours now
}

void OriginTls::keep_session(const std::string& key, SSL_SESSION* session) {
  sessions_.push_front({key, session});
  if (sessions_.size() <= kMostSessions) return;
  SSL_SESSION_free(sessions_.back().session);
  sessions_.pop_back();
}

// Each once: TLS 1.3 wants it so (RFC 8446 appendix C.4), and the next one comes with the connection.
void OriginTls::use_session(const std::string& key, SSL* ssl) {
  const auto found =
      std::find_if(sessions_.begin(), sessions_.end(), [&](const Session& one) { return one.key == key; });
  if (found == sessions_.end()) return;
  if (SSL_SESSION_is_resumable(found->session)) (void)SSL_set_session(ssl, found->session);
  SSL_SESSION_free(found->session);
  sessions_.erase(found);
}

Denial upstream_tls(const Route& route, const Error& error) {
  Denial out;
  out.status = 502;
  out.code = codes::kUpstreamTls;
  out.rule = route.rule;
  out.message = "no TLS with " + http::to_string(route.to, 443) + ": " + error.message;
  out.what_to_do =
      error.code == "tls.untrusted"
          ? "if its certificate is the company's own, the operator may name the authority: --upstream-ca"
          : "see whether the origin speaks TLS 1.2 or 1.3 on this port";
  return out;
}

}  // namespace firestop::egress
