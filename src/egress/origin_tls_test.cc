#include "egress/origin_tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include <filesystem>

#include "base/file.h"
#include "egress/testing/tls_pair.h"

namespace firestop::egress {
namespace {

using testing::Handshake;
using ::testing::HasSubstr;
using testing::shake_hands;

// Origins whose certificates another authority of the same kind signs.
class OriginTlsTest : public ::testing::Test {
 protected:
  static std::unique_ptr<CertificateAuthority> world(time_t at = ::time(nullptr)) {
    auto made = CertificateAuthority::make({{"**.example.com"}, [at] { return at; }});
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  static std::unique_ptr<OriginTls> trusting(const CertificateAuthority& authority,
                                             std::string_view operators = {}) {
    auto made = OriginTls::make(authority.certificate(), operators);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  static Route route(const std::string& host, const CertificateAuthority* ca = nullptr) {
    Route out;
    out.to = {host, 443};
    out.rule = "egress[1]";
    if (ca) out.ca = std::make_shared<const std::string>(ca->certificate());
    return out;
  }
  static Handshake connect(OriginTls& tls, const Route& to, CertificateAuthority& origin,
                           std::string server_host = {}, const std::vector<std::string>& protocols = {}) {
    const auto client = tls.connect_tls(to, protocols);
    if (!client) return {};
    const auto server = origin.accept_tls(server_host.empty() ? to.to.host : server_host, {"h2", "http/1.1"});
    EXPECT_TRUE(server);
    return shake_hands(client->get(), server->get());
  }
};

TEST_F(OriginTlsTest, AnOriginThatTheHostTrusts) {
  const auto origin = world();
  const auto tls = trusting(*origin);
  const Handshake seen = connect(*tls, route("api.example.com"), *origin, {}, {"http/1.1"});
  EXPECT_TRUE(seen.ok) << X509_verify_cert_error_string(seen.verified);
  EXPECT_EQ(seen.protocol, "http/1.1");
  EXPECT_EQ(connect(*tls, route("api.example.com"), *origin, {}, {"h2", "http/1.1"}).protocol, "h2");
  EXPECT_EQ(connect(*tls, route("api.example.com"), *origin).protocol, "");
}

TEST_F(OriginTlsTest, inv08_AnOriginThatIsNotWhoItShouldBeIsRefused) {
  const auto origin = world(), stranger = world(), past = world(::time(nullptr) - 3 * 24 * 3600);
  const auto tls = trusting(*origin, past->certificate());
  EXPECT_EQ(connect(*tls, route("api.example.com"), *origin, "b.example.com").verified,
            X509_V_ERR_HOSTNAME_MISMATCH);
  EXPECT_EQ(connect(*tls, route("api.example.com"), *origin, "x.api.example.com").verified,
            X509_V_ERR_HOSTNAME_MISMATCH);
  EXPECT_EQ(connect(*tls, route("api.example.com"), *stranger).verified,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
  EXPECT_EQ(connect(*tls, route("api.example.com"), *past).verified, X509_V_ERR_CERT_HAS_EXPIRED);
  EXPECT_EQ(connect(*tls, route("192.0.2.1"), *origin, "api.example.com").verified,
            X509_V_ERR_IP_ADDRESS_MISMATCH);
}

TEST_F(OriginTlsTest, inv08_NoDowngrade) {
  const auto origin = world();
  const auto tls = trusting(*origin);
  const auto client = tls->connect_tls(route("api.example.com"), {});
  const auto server = origin->accept_tls("api.example.com", {});
  ASSERT_TRUE(client && server);
  SSL_set_security_level(server->get(), 0);
  SSL_set_min_proto_version(server->get(), TLS1_VERSION);
  SSL_set_max_proto_version(server->get(), TLS1_1_VERSION);
  EXPECT_FALSE(shake_hands(client->get(), server->get()).ok);
}

TEST_F(OriginTlsTest, AuthoritiesOfTheOperatorCountEverywhereAndARulesForItsOrigin) {
  const auto host = world(), company = world(), rule = world();
  const auto tls = trusting(*host, company->certificate());
  EXPECT_TRUE(connect(*tls, route("a.example.com"), *company).ok);
  EXPECT_TRUE(connect(*tls, route("a.example.com"), *host).ok);
  EXPECT_FALSE(connect(*tls, route("a.example.com"), *rule).ok);
  EXPECT_TRUE(connect(*tls, route("a.example.com", rule.get()), *rule).ok);
  EXPECT_TRUE(connect(*tls, route("a.example.com", rule.get()), *host).ok) << "besides the host's";
  EXPECT_FALSE(connect(*tls, route("a.example.com"), *rule).ok) << "also after it was used";
  const auto alone = OriginTls::make("", company->certificate());  // a host without a store
  ASSERT_TRUE(alone);
  EXPECT_TRUE(connect(**alone, route("a.example.com"), *company).ok);
  EXPECT_FALSE(connect(**alone, route("a.example.com"), *host).ok);
  EXPECT_FALSE(OriginTls::make("", ""));
}

TEST_F(OriginTlsTest, AnOriginIsRememberedForItselfAlone) {
  const auto origin = world(), rule = world();
  const auto tls = trusting(*origin, rule->certificate());
  EXPECT_FALSE(connect(*tls, route("a.example.com"), *origin).resumed);
  EXPECT_GT(tls->sessions(), 0u);
  EXPECT_TRUE(connect(*tls, route("a.example.com"), *origin).resumed);
  EXPECT_FALSE(connect(*tls, route("b.example.com"), *origin).resumed);
  Route other_port = route("a.example.com");
  other_port.to.port = 8443;
  EXPECT_FALSE(connect(*tls, other_port, *origin).resumed);
  EXPECT_FALSE(connect(*tls, route("a.example.com", rule.get()), *origin).resumed) << "verified by others";
  for (size_t i = 0; i < OriginTls::kMostSessions; ++i)
    connect(*tls, route("n" + std::to_string(i) + ".example.com"), *origin);
  EXPECT_EQ(tls->sessions(), OriginTls::kMostSessions);
}

TEST_F(OriginTlsTest, WhatIsNoCertificate) {
  const auto origin = world();
  const std::string good = origin->certificate();
  std::string broken = good;
  broken[broken.find('\n') + 10] = '!';
  for (const std::string& text :
       {std::string(), std::string("x"), broken, good + broken, good.substr(0, good.size() / 2),
        std::string("-----BEGIN CERTIFICATE-----\n")}) {
    const auto refused = OriginTls::check(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, "tls.bad_trust");
  }
  EXPECT_TRUE(OriginTls::check(good));
  EXPECT_TRUE(OriginTls::check("# comment\n" + good + "\n" + good + "trailing words\n"));
  const auto tls = trusting(*origin);
  Route to = route("a.example.com");
  to.ca = std::make_shared<const std::string>("nonsense");
  EXPECT_FALSE(tls->connect_tls(to, {}));
}

TEST_F(OriginTlsTest, WhatTheGuestIsTold) {
  const Denial untrusted =
      upstream_tls(route("api.example.com"), {"tls.untrusted", "its certificate has expired"});
  EXPECT_EQ(untrusted.status, 502);
  EXPECT_EQ(untrusted.code, "egress.upstream_tls");
  EXPECT_EQ(untrusted.rule, "egress[1]");
  EXPECT_THAT(untrusted.message, HasSubstr("api.example.com: its certificate has expired"));
  EXPECT_THAT(untrusted.what_to_do, HasSubstr("--upstream-ca"));
}

TEST_F(OriginTlsTest, WhereTheHostsTrustIs) {
  const auto origin = world();
  const std::string folder = ::testing::TempDir() + "/trust-" + std::to_string(::getpid());
  ASSERT_TRUE(make_directories(folder + "/certs"));
  ASSERT_TRUE(make_directories(folder + "/empty"));
  ASSERT_TRUE(write_file_atomic(folder + "/bundle.pem", origin->certificate()));
  ASSERT_TRUE(write_file_atomic(folder + "/certs/one.pem", origin->certificate()));
  ASSERT_TRUE(write_file_atomic(folder + "/certs/README", "no certificate"));
  const auto with = [](std::string name, std::string value) {
    return read_host_trust([=](const char* asked) -> std::optional<std::string> {
      if (name == asked) return value;
      return std::nullopt;
    });
  };
  EXPECT_EQ(with("SSL_CERT_FILE", folder + "/bundle.pem").value_or(""), origin->certificate());
  EXPECT_EQ(with("SSL_CERT_DIR", folder + "/certs").value_or(""), origin->certificate() + "\n");
  EXPECT_FALSE(with("SSL_CERT_FILE", folder + "/missing.pem")) << "named, so no other counts";
  EXPECT_EQ(with("SSL_CERT_DIR", folder + "/empty").error().code, "tls.no_trust");
  if (exists("/etc/ssl/certs/ca-certificates.crt")) {
    const auto own = with("NOTHING", "");
    ASSERT_TRUE(own);
    EXPECT_TRUE(OriginTls::make(*own, ""));
  }
  ASSERT_TRUE(remove_tree(folder));
}

}  // namespace
}  // namespace firestop::egress
