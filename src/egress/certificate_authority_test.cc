#include "egress/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/file.h"
#include "base/process.h"
#include "egress/testing/tls_pair.h"

namespace firestop::egress {
namespace {

using testing::Handshake;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::shake_hands;
using Protocols = std::vector<std::string>;

std::unique_ptr<CertificateAuthority> authority_of(
    std::vector<std::string> hosts, std::function<time_t()> now = [] { return ::time(nullptr); }) {
  auto made = CertificateAuthority::make({std::move(hosts), std::move(now)});
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

// A client of the guest's: trusts the authority, reads strictly, has a clock.
class Client {
 public:
  explicit Client(const CertificateAuthority& authority, time_t at = ::time(nullptr))
      : context_(SSL_CTX_new(TLS_client_method())) {
    BIO* bio =
        BIO_new_mem_buf(authority.certificate().data(), static_cast<int>(authority.certificate().size()));
    const X509Ptr root(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
    BIO_free(bio);
    EXPECT_TRUE(root);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), root.get());
    X509_VERIFY_PARAM* verify = SSL_CTX_get0_param(context_.get());
    X509_VERIFY_PARAM_set_flags(verify, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_time(verify, at);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  }
  http::SslPtr connection(const std::string& host, const std::string& alpn = {}) const {
    http::SslPtr ssl(SSL_new(context_.get()));
    SSL_set_tlsext_host_name(ssl.get(), host.c_str());
    SSL_set1_host(ssl.get(), host.c_str());
    if (!alpn.empty())
      SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                          static_cast<unsigned>(alpn.size()));
    SSL_set_connect_state(ssl.get());
    return ssl;
  }
  Handshake with(CertificateAuthority& authority, const std::string& host, const std::string& alpn = {},
                 const Protocols& protocols = {"http/1.1"}) const {
    const http::SslPtr client = connection(host, alpn);
    auto server = authority.accept_tls(host, protocols);
    if (!server) return {};
    return shake_hands(client.get(), server->get());
  }
  SSL_CTX* context() const { return context_.get(); }

 private:
  http::SslContextPtr context_;
};

TEST(CertificateAuthority, AStrictClientTrustsItForTheNamesOfThePolicy) {
  const auto authority = authority_of({"api.example.com", "*.example.org", "**.example.net"});
  const Client client(*authority);
  for (const char* host :
       {"api.example.com", "a.example.org", "a.b.example.net", "under_score.example.org"}) {
    const Handshake seen = client.with(*authority, host);
    EXPECT_TRUE(seen.ok) << host << ": " << X509_verify_cert_error_string(seen.verified);
  }
  const std::string long_name = "a." + std::string(60, 'b') + "." + std::string(60, 'c') + ".example.net";
  EXPECT_TRUE(client.with(*authority, long_name).ok) << "longer than a common name may be";
}

TEST(CertificateAuthority, inv07_ForOtherNamesNobodyTrustsIt) {
  const auto authority = authority_of({"api.example.com", "*.example.org"});
  const Client client(*authority);
  for (const char* host : {"evil.com", "example.com", "xapi.example.com", "example.org.evil.com", "com"}) {
    const Handshake seen = client.with(*authority, host);
    EXPECT_FALSE(seen.ok) << host;
    EXPECT_EQ(seen.verified, X509_V_ERR_PERMITTED_VIOLATION) << host;
  }
  EXPECT_FALSE(Client(*authority_of({})).with(*authority_of({}), "api.example.com").ok);
  const auto nothing = authority_of({});
  EXPECT_EQ(Client(*nothing).with(*nothing, "api.example.com").verified, X509_V_ERR_PERMITTED_VIOLATION);
}

TEST(CertificateAuthority, TwoSandboxesDoNotTrustEachOther) {
  const auto one = authority_of({"api.example.com"}), other = authority_of({"api.example.com"});
  EXPECT_NE(one->subject_hash(), other->subject_hash());
  EXPECT_FALSE(Client(*one).with(*other, "api.example.com").ok);
}

TEST(CertificateAuthority, ALeafIsForItsNameAlone) {
  const auto authority = authority_of({"**.example.com"});
  const Client client(*authority);
  const http::SslPtr ssl = client.connection("b.example.com");
  const auto server = authority->accept_tls("a.example.com", {});
  ASSERT_TRUE(server);
  EXPECT_EQ(shake_hands(ssl.get(), server->get()).verified, X509_V_ERR_HOSTNAME_MISMATCH);
}

TEST(CertificateAuthority, TheChainIsSent) {
  const auto authority = authority_of({"api.example.com"});
  const Client client(*authority);
  const http::SslPtr ssl = client.connection("api.example.com");
  const auto server = authority->accept_tls("api.example.com", {});
  ASSERT_TRUE(shake_hands(ssl.get(), server->get()).ok);
  EXPECT_EQ(sk_X509_num(SSL_get_peer_cert_chain(ssl.get())), 2);
}

TEST(CertificateAuthority, AClientWhoseClockIsBehindOrAheadTrustsIt) {
  const auto authority = authority_of({"api.example.com"});
  const time_t now = ::time(nullptr);
  EXPECT_TRUE(Client(*authority, now - 50 * 60).with(*authority, "api.example.com").ok);
  EXPECT_TRUE(Client(*authority, now + 20 * 3600).with(*authority, "api.example.com").ok);
  EXPECT_EQ(Client(*authority, now - 2 * 3600).with(*authority, "api.example.com").verified,
            X509_V_ERR_CERT_NOT_YET_VALID);
  EXPECT_EQ(Client(*authority, now + 24 * 3600).with(*authority, "api.example.com").verified,
            X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST(CertificateAuthority, LeavesAreMadeAnewBeforeTheyEndAndAreBounded) {
  time_t now = ::time(nullptr);
  const auto authority = authority_of({"**.example.com"}, [&now] { return now; });
  for (int hour = 0; hour <= 72; hour += 5) {
    EXPECT_TRUE(Client(*authority, now).with(*authority, "api.example.com").ok) << hour;
    now += 5 * 3600;
  }
  EXPECT_EQ(authority->leaves(), 1u);
  now -= 48 * 3600;
  EXPECT_TRUE(Client(*authority, now).with(*authority, "api.example.com").ok) << "the clock was set back";

  for (size_t i = 0; i < CertificateAuthority::kMostLeaves + 10; ++i) {
    ASSERT_TRUE(authority->accept_tls("n" + std::to_string(i) + ".example.com", {}));
    ASSERT_TRUE(authority->accept_tls("api.example.com", {}));
  }
  EXPECT_EQ(authority->leaves(), CertificateAuthority::kMostLeaves);
}

TEST(CertificateAuthority, ProtocolsByAlpn) {
  const auto authority = authority_of({"api.example.com"});
  const Client client(*authority);
  const std::string h1 = "\x08http/1.1", both = "\x02h2\x08http/1.1", h2 = "\x02h2", other = "\x04imap";
  EXPECT_EQ(client.with(*authority, "api.example.com", both, {"h2", "http/1.1"}).protocol, "h2");
  EXPECT_EQ(client.with(*authority, "api.example.com", h1 + h2, {"h2", "http/1.1"}).protocol, "h2")
      << "our order";
  EXPECT_EQ(client.with(*authority, "api.example.com", both, {"http/1.1"}).protocol, "http/1.1");
  EXPECT_EQ(client.with(*authority, "api.example.com", h1, {"h2", "http/1.1"}).protocol, "http/1.1");
  EXPECT_EQ(client.with(*authority, "api.example.com", "", {"h2", "http/1.1"}).protocol, "");
  EXPECT_TRUE(client.with(*authority, "api.example.com", "", {"h2", "http/1.1"}).ok);
  EXPECT_FALSE(client.with(*authority, "api.example.com", h2, {"http/1.1"}).ok);
  EXPECT_FALSE(client.with(*authority, "api.example.com", other, {"h2", "http/1.1"}).ok);
}

TEST(CertificateAuthority, ATicketIsForItsName) {
  const auto authority = authority_of({"**.example.com"});
  const Client client(*authority);
  static SSL_SESSION* session = nullptr;
  SSL_CTX_set_session_cache_mode(client.context(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(client.context(), [](SSL*, SSL_SESSION* fresh) {
    SSL_SESSION_free(session);
    session = fresh;
    return 1;
  });
  ASSERT_TRUE(client.with(*authority, "a.example.com").ok);
  ASSERT_TRUE(session);
  for (const char* host : {"a.example.com", "b.example.com"}) {
    const http::SslPtr ssl = client.connection(host);
    SSL_SESSION* const used = SSL_SESSION_dup(session);
    SSL_set_session(ssl.get(), used);
    SSL_SESSION_free(used);
    const auto server = authority->accept_tls(host, {});
    const Handshake seen = shake_hands(ssl.get(), server->get());
    EXPECT_TRUE(seen.ok);
    EXPECT_EQ(seen.resumed, host == std::string("a.example.com")) << host;
  }
  SSL_SESSION_free(session);
  session = nullptr;
}

TEST(CertificateAuthority, WhatIsNoNameGetsNone) {
  const auto authority = authority_of({"**.example.com"});
  std::vector<std::string> hosts = {"",
                                    ".",
                                    "a..example.com",
                                    "a.example.com.",
                                    "A.example.com",
                                    "*.example.com",
                                    "a b.example.com",
                                    "b\xc3\xbc.example.com",
                                    "192.0.2.1",
                                    "2130706433",
                                    "::1"};
  hosts.emplace_back("a.example.com\0.evil.com", 23);
  hosts.push_back(std::string(64, 'a') + ".example.com");
  hosts.emplace_back(254, 'a');
  for (const std::string& host : hosts) {
    const auto refused = authority->accept_tls(host, {});
    ASSERT_FALSE(refused) << host;
    EXPECT_EQ(refused.error().code, "tls.authority");
  }
  EXPECT_EQ(authority->leaves(), 0u);
}

// As the openssl program reads it.
TEST(CertificateAuthority, inv08_WhatIsGivenOutIsTheCertificateAlone) {
  const auto authority = authority_of({"api.example.com", "*.example.org"});
  EXPECT_THAT(authority->certificate(), Not(HasSubstr("PRIVATE")));
  const std::string file = ::testing::TempDir() + "/authority-" + std::to_string(::getpid());
  ASSERT_TRUE(write_file_atomic(file, authority->certificate()));
  Command command;
  command.argv = {"openssl", "x509", "-in", file, "-noout", "-text", "-hash"};
  const auto text = run_checked(std::move(command));
  ::unlink(file.c_str());
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, HasSubstr(authority->subject_hash() + "\n"));
  EXPECT_THAT(*text, HasSubstr("CA:TRUE, pathlen:1"));
  EXPECT_THAT(*text, HasSubstr("DNS:api.example.com"));
  EXPECT_THAT(*text, HasSubstr("DNS:example.org"));
  EXPECT_THAT(*text, HasSubstr("prime256v1"));
}

}  // namespace
}  // namespace firestop::egress
