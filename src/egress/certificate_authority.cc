#include "egress/certificate_authority.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/digest.h"
#include "codec/address.h"
#include "egress/alpn.h"

namespace firestop::egress {
namespace {

constexpr size_t kMostCommonName = 64;  // RFC 5280, ub-common-name
constexpr int kVersion3 = 2;

Unexpected failed(const char* what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string message =
      std::string("cannot make a certificate: ") + what + (reason ? std::string(": ") + reason : "");
  ERR_clear_error();
  return fail("tls.authority", std::move(message));
}

// A DNS name as certificates have them; underscores too, since hosts exist that have some.
bool is_name(const std::string& host) {
  if (host.empty() || host.size() > 253 || codec::odd_address(host) || codec::Address::parse(host))
    return false;
  size_t label = 0;
  for (const char c : host) {
    if (c == '.' ? label == 0 : !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
      return false;
    label = c == '.' ? 0 : label + 1;
    if (label > 63) return false;
  }
  return label > 0;
}

// 127 random bits: positive, and never twice.
bool set_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);
  BIGNUM* number = BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr);
  const bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
  BN_free(number);
  return ok;
}

bool set_times(X509* certificate, time_t from, time_t until) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), from) &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), until);
}

bool add_name_part(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

// `value` is a literal of ours, never a guest's or a manifest's text: OpenSSL's language can include files.
bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  const bool ok = extension && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return ok;
}

GENERAL_NAME* general_name(int type, std::string_view bytes) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_STRING* value = type == GEN_DNS ? ASN1_IA5STRING_new() : ASN1_OCTET_STRING_new();
  if (!name || !value || ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size())) != 1)
    std::abort();
  GENERAL_NAME_set0_value(name, type, value);
  return name;
}

bool add_host(X509* certificate, const std::string& host) {
  GENERAL_NAMES* names = GENERAL_NAMES_new();
  const bool ok = names && sk_GENERAL_NAME_push(names, general_name(GEN_DNS, host)) > 0 &&
                  X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
  GENERAL_NAMES_free(names);
  return ok;
}

void add_subtree(STACK_OF(GENERAL_SUBTREE) * &list, GENERAL_NAME* name) {
  if (!list) list = sk_GENERAL_SUBTREE_new_null();
  GENERAL_SUBTREE* subtree = GENERAL_SUBTREE_new();
  if (!list || !subtree) std::abort();
  GENERAL_NAME_free(subtree->base);
  subtree->base = name;
  if (sk_GENERAL_SUBTREE_push(list, subtree) <= 0) std::abort();
}

// These names and what is below them; no address.
bool add_constraints(X509* certificate, const std::vector<std::string>& hosts) {
  NAME_CONSTRAINTS* constraints = NAME_CONSTRAINTS_new();
  if (!constraints) std::abort();
  std::vector<std::string> names;
  for (std::string host : hosts) {
    if (host.starts_with('*')) host.erase(0, host.find('.') + 1);
    names.push_back(std::move(host));
  }
  if (names.empty()) names.emplace_back("invalid");
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names)
    add_subtree(constraints->permittedSubtrees, general_name(GEN_DNS, name));
  for (const size_t size : {8, 32})  // address and mask, all zero: every one
    add_subtree(constraints->excludedSubtrees, general_name(GEN_IPADD, std::string(size, '\0')));
  const bool ok =
      X509_add1_ext_i2d(certificate, NID_name_constraints, constraints, 1, X509V3_ADD_DEFAULT) == 1;
  NAME_CONSTRAINTS_free(constraints);
  return ok;
}

std::string to_pem(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  if (!bio || PEM_write_bio_X509(bio, certificate) != 1) std::abort();
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<size_t>(size));
  BIO_free(bio);
  return out;
}

// Where a connection keeps what it may choose from.
int protocols_index() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* data, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<std::string*>(data); });
  return index;
}

int choose_protocol(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  const auto* ours = static_cast<const std::string*>(SSL_get_ex_data(ssl, protocols_index()));
  if (!ours || ours->empty()) return SSL_TLSEXT_ERR_NOACK;
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(ours->data()),
                            static_cast<unsigned>(ours->size()), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

CertificateAuthority::CertificateAuthority(Settings settings)
    : settings_(std::move(settings)), context_(http::make_tls_context(TLS_server_method())) {
  SSL_CTX_set_alpn_select_cb(context_.get(), choose_protocol, nullptr);
  // Who comes back brings a ticket; nothing is kept here.
  SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
}

Result<std::unique_ptr<CertificateAuthority>> CertificateAuthority::make(Settings settings) {
  std::unique_ptr<CertificateAuthority> authority(new CertificateAuthority(std::move(settings)));
  TRY(authority->make_authority());
  return authority;
}

// An authority's certificate for `key`; `issuer` null: it signs itself.
Result<X509Ptr> CertificateAuthority::make_issuer(const std::string& name, EVP_PKEY* key, X509* issuer,
                                                  EVP_PKEY* issuer_key) const {
  X509Ptr made(X509_new());
  X509* const own = made.get();
  const time_t now = settings_.now();
  X509_NAME* const subject = own ? X509_get_subject_name(own) : nullptr;
  if (!own || !key || X509_set_version(own, kVersion3) != 1 || !set_serial(own) ||
      !set_times(own, now - kAuthorityBackdated, now + kAuthorityLife) ||
      !add_name_part(subject, "O", "Firestop") || !add_name_part(subject, "CN", name) ||
      X509_set_issuer_name(own, issuer ? X509_get_subject_name(issuer) : subject) != 1 ||
      X509_set_pubkey(own, key) != 1)
    return failed("its fields");
  X509* const by = issuer ? issuer : own;
  if (!add_extension(own, by, NID_basic_constraints,
                     issuer ? "critical,CA:TRUE,pathlen:0" : "critical,CA:TRUE,pathlen:1") ||
      !add_extension(own, by, NID_key_usage, "critical,keyCertSign") ||
      !add_extension(own, by, NID_subject_key_identifier, "hash") ||
      (issuer && !add_extension(own, by, NID_authority_key_identifier, "keyid:always")) ||
      !add_constraints(own, settings_.hosts))
    return failed("its extensions");
  if (X509_sign(own, issuer_key, EVP_sha256()) == 0) return failed("its signature");
  return made;
}

Result<void> CertificateAuthority::make_authority() {
  // Gone when this returns. It has signed one certificate, and nobody can have it sign another.
  const KeyPtr root_key(EVP_EC_gen("P-256"));
  key_.reset(EVP_EC_gen("P-256"));
  leaf_key_.reset(EVP_EC_gen("P-256"));
  if (!root_key || !key_ || !leaf_key_) return failed("its key");
  // A name of its own, so that no two sandboxes' authorities are taken for each other.
  const std::string name = "Firestop sandbox " + random_hex(8);
  TRY_ASSIGN(root_, make_issuer(name, root_key.get(), nullptr, root_key.get()));
  TRY_ASSIGN(authority_, make_issuer(name + " names", key_.get(), root_.get(), root_key.get()));
  pem_ = to_pem(root_.get());
  return {};
}

std::string CertificateAuthority::subject_hash() const {
  char text[16];
  std::snprintf(text, sizeof text, "%08lx", X509_subject_name_hash(root_.get()));
  return text;
}

Result<X509Ptr> CertificateAuthority::sign_leaf(const std::string& host) {
  if (!is_name(host)) return fail("tls.authority", "no certificate is made for what is no host's name");
  X509Ptr leaf(X509_new());
  X509* const own = leaf.get();
  const time_t now = settings_.now();
  if (!own || X509_set_version(own, kVersion3) != 1 || !set_serial(own) ||
      !set_times(own, now - kBackdated, now - kBackdated + kLeafLife) ||
      !add_name_part(X509_get_subject_name(own), "CN", host.size() <= kMostCommonName ? host : "Firestop") ||
      X509_set_issuer_name(own, X509_get_subject_name(authority_.get())) != 1 ||
      X509_set_pubkey(own, leaf_key_.get()) != 1)
    return failed("its fields");
  X509* const issuer = authority_.get();
  if (!add_extension(own, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(own, issuer, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(own, issuer, NID_ext_key_usage, "serverAuth") ||
      !add_extension(own, issuer, NID_subject_key_identifier, "hash") ||
      !add_extension(own, issuer, NID_authority_key_identifier, "keyid:always") || !add_host(own, host))
    return failed("its extensions");
  if (X509_sign(own, key_.get(), EVP_sha256()) == 0) return failed("its signature");
  return leaf;
}

Result<X509*> CertificateAuthority::leaf_for(const std::string& host) {
  const time_t now = settings_.now();
  if (const auto found = by_host_.find(host); found != by_host_.end()) {
    const auto leaf = found->second;
    // A clock that was set back makes it unfit, too.
    if (now >= leaf->made && now - leaf->made < kRenewAfter) {
      leaves_.splice(leaves_.begin(), leaves_, leaf);
      return leaf->certificate.get();
    }
    leaves_.erase(leaf);
    by_host_.erase(found);
  }
  TRY_ASSIGN(X509Ptr certificate, sign_leaf(host));
  if (leaves_.size() >= kMostLeaves) {
    by_host_.erase(leaves_.back().host);
    leaves_.pop_back();
  }
  leaves_.push_front({host, std::move(certificate), now});
  by_host_[host] = leaves_.begin();
  return leaves_.front().certificate.get();
}

Result<http::SslPtr> CertificateAuthority::accept_tls(const std::string& host,
                                                      const std::vector<std::string>& protocols) {
  TRY_ASSIGN(X509* const leaf, leaf_for(host));
  http::SslPtr ssl(SSL_new(context_.get()));
  if (!ssl || SSL_use_certificate(ssl.get(), leaf) != 1 ||
      SSL_use_PrivateKey(ssl.get(), leaf_key_.get()) != 1 ||
      SSL_add1_chain_cert(ssl.get(), authority_.get()) != 1)
    return failed("its use");
  // A ticket is good for the name that it was given for.
  const std::string name = sha256_hex(host).substr(0, SSL_MAX_SID_CTX_LENGTH);
  if (SSL_set_session_id_context(ssl.get(), reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<unsigned>(name.size())) != 1)
    return failed("its use");
  auto wire = std::make_unique<std::string>(alpn_wire(protocols));
  if (SSL_set_ex_data(ssl.get(), protocols_index(), wire.get()) != 1) return failed("its use");
  [[maybe_unused]] const auto* const the_connections = wire.release();
  SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace firestop::egress
