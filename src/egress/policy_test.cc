#include "egress/policy.h"

#include <gtest/gtest.h>

#include "egress/codes.h"
#include "manifest/load.h"

namespace firestop::egress {
namespace {

using Use = ConnectionPlan::Use;

// The rules of a manifest, as people write them.
Policy policy_of(const std::string& egress, const std::string& credentials = "") {
  const auto loaded =
      manifest::load_text("t.yaml", "firestop: 1\nname: t\negress:\n" + egress +
                                        (credentials.empty() ? "" : "credentials:\n" + credentials));
  EXPECT_TRUE(loaded.faults.empty()) << render(loaded.faults, loaded.text);
  return Policy(loaded.manifest.egress);
}

struct Row {
  const char* method;
  const char* url;   // scheme://host:port/target
  const char* code;  // "" if allowed
  const char* rule;
};

Verdict ask(const Policy& policy, const Row& row, const http::Headers* headers = nullptr) {
  const std::string_view url = row.url;
  const size_t host = url.find("://") + 3, slash = std::min(url.find('/', host), url.size());
  const size_t colon = url.rfind(':', slash);
  const std::string target(slash < url.size() ? url.substr(slash) : "*");
  const auto port = static_cast<uint16_t>(std::stoi(std::string(url.substr(colon + 1, slash - colon - 1))));
  return policy.request({.scheme = url.substr(0, host - 3),
                         .to = {std::string(url.substr(host, colon - host)), port},
                         .method = row.method,
                         .target = target,
                         .headers = headers});
}

void hold(const Policy& policy, std::initializer_list<Row> rows) {
  for (const auto& row : rows) {
    const auto verdict = ask(policy, row);
    EXPECT_EQ(verdict.denial ? verdict.denial->code : "", row.code) << row.method << " " << row.url;
    EXPECT_EQ(verdict.rule ? verdict.rule->name : "", row.rule) << row.method << " " << row.url;
    if (!verdict.denial) continue;
    EXPECT_EQ(verdict.denial->rule, row.rule);
    EXPECT_EQ(verdict.denial->status, 403);
    EXPECT_NE(verdict.denial->message, "");
    EXPECT_NE(verdict.denial->what_to_do, "");
  }
}

TEST(Policy, HostsPortsMethodsAndPaths) {
  hold(
      policy_of(R"(
  - {host: api.example.com, methods: [GET, POST], paths: [/v1/**]}
  - {host: "*.example.org"}
  - {host: "**.example.net", port: 8443}
)"),
      {
          {"GET", "https://api.example.com:443/v1/models", "", "egress[0]"},
          {"POST", "https://api.example.com:443/v1/models?x=y", "", "egress[0]"},
          {"HEAD", "https://api.example.com:443/v1/models", "", "egress[0]"},  // follows GET
          {"GET", "http://api.example.com:80/v1/models", "", "egress[0]"},     // same policy over http://
          {"GET", "http://api.example.com:443/v1/models", codes::kPlainText, "egress[0]"},
          {"DELETE", "https://api.example.com:443/v1/models", codes::kMethod, "egress[0]"},
          {"get", "https://api.example.com:443/v1/models", codes::kMethod, "egress[0]"},
          {"GET", "https://api.example.com:443/v2/models", codes::kPath, "egress[0]"},
          {"DELETE", "https://api.example.com:443/v2/models", codes::kPath, "egress[0]"},
          {"GET", "https://api.example.com:443/v1/../v2", codes::kPath, "egress[0]"},
          {"GET", "https://api.example.com:443/v1/%2e%2e/v2", codes::kPath, "egress[0]"},
          {"GET", "https://api.example.com:443//v1/x", codes::kPath, "egress[0]"},
          {"GET", "https://api.example.com:443/v1/..;/x", codes::kPath, "egress[0]"},
          {"GET", "https://api.example.com:443/v1/a%2Fb", "", "egress[0]"},
          {"GET", "https://api.example.com:443/v1/a%252Fb", codes::kPath, "egress[0]"},
          {"GET", "https://api.example.com:8443/v1/models", codes::kNoRule, "egress[0]"},
          {"GET", "https://example.com:443/v1/models", codes::kNoRule, ""},
          {"GET", "https://a.api.example.com:443/v1/models", codes::kNoRule, ""},
          {"GET", "https://a.example.org:443/", "", "egress[1]"},
          {"OPTIONS", "https://a.example.org:443", "", "egress[1]"},     // OPTIONS *
          {"GET", "https://a.example.org:443/a/../b", "", "egress[1]"},  // where every path is allowed
          {"GET", "https://example.org:443/", codes::kNoRule, ""},
          {"GET", "https://a.b.example.org:443/", codes::kNoRule, ""},
          {"GET", "https://evil-example.org:443/", codes::kNoRule, ""},
          {"TRACE", "https://a.example.org:443/", codes::kMethod, "egress[1]"},  // would show its own headers
          {"CONNECT", "https://a.example.org:443/", codes::kMethod, "egress[1]"},
          {"GET", "https://a.b.example.net:8443/", "", "egress[2]"},
          {"GET", "https://a.b.example.net:443/", codes::kNoRule, "egress[2]"},
          {"GET", "https://example.net:8443/", codes::kNoRule, ""},
          {"GET", "https://192.0.2.1:443/", codes::kNoRule, ""},
      });
}

TEST(Policy, TheNearestRuleIsNamed) {
  hold(policy_of(R"(
  - {host: a.example.com, methods: [GET], paths: [/x]}
  - {host: a.example.com, methods: [POST], paths: [/y]}
)"),
       {
           {"POST", "https://a.example.com:443/y", "", "egress[1]"},
           {"GET", "https://a.example.com:443/y", codes::kMethod, "egress[1]"},
           {"POST", "https://a.example.com:443/x", codes::kMethod, "egress[0]"},
           {"POST", "https://a.example.com:443/z", codes::kPath, "egress[0]"},
       });
}

TEST(Policy, ACredentialNeitherWidensNorNarrows) {
  const auto policy = policy_of(R"(
  - {host: api.example.com, paths: [/v1/**]}
  - {host: api.example.com, methods: [POST], paths: [/v1/chat], credential: model}
)",
                                "  model: {env: KEY, inject: bearer}\n");
  hold(policy, {
                   {"POST", "https://api.example.com:443/v1/chat", "", "egress[1]"},
                   {"GET", "https://api.example.com:443/v1/chat", "", "egress[0]"},
                   {"POST", "https://api.example.com:443/v1/files", "", "egress[0]"},
                   {"POST", "https://api.example.com:443/v2", codes::kPath, "egress[0]"},
               });
  EXPECT_TRUE(policy.has_credential("api.example.com"));
  EXPECT_FALSE(policy.has_credential("example.com"));
  ASSERT_EQ(policy.rules_of("model").size(), 1u);
  EXPECT_TRUE(policy.rules_of("").empty());
}

TEST(Policy, GitOwnsItsRepositorysRequests) {
  hold(
      policy_of(R"(
  - {host: git.example.com}
  - {host: git.example.com, git: {repository: acme/widget, fetch: true}}
)"),
      {
          {"GET", "https://git.example.com:443/acme/widget/info/refs?service=git-upload-pack", "",
           "egress[1]"},
          {"GET", "https://git.example.com:443/acme/widget.git/info/refs", "", "egress[1]"},
          {"POST", "https://git.example.com:443/acme/widget.git/git-receive-pack", "", "egress[1]"},
          {"PUT", "https://git.example.com:443/acme/widget.git/git-receive-pack", codes::kMethod,
           "egress[1]"},
          {"GET", "https://git.example.com:443/acme/other/info/refs", codes::kGitRepository, "egress[1]"},
          {"POST", "https://git.example.com:443/ACME/Widget/git-receive-pack", codes::kGitRepository,
           "egress[1]"},
          {"POST", "https://git.example.com:443/x/../acme/widget/git-receive-pack", codes::kPath,
           "egress[1]"},
          {"POST", "https://git.example.com:443//acme/widget/git-receive-pack", codes::kPath, "egress[1]"},
          {"POST", "https://git.example.com:443/acme%2Fwidget/git-receive-pack", codes::kGitRepository,
           "egress[1]"},
          {"POST", "https://git.example.com:443/acme/widget%2Fgit-receive-pack", codes::kGitRepository,
           "egress[1]"},
          {"POST", "https://git.example.com:443/acme/widget%252Fgit-receive-pack", codes::kPath, "egress[1]"},
          {"GET", "https://git.example.com:443/acme/widget/info%2F%2Frefs", codes::kGitRepository,
           "egress[1]"},
          {"GET", "https://git.example.com:443/acme/widget", "", "egress[0]"},
          {"GET", "https://git.example.com:443/acme/%77idget/info/refs", "", "egress[1]"},
      });
}

// Servers that take a method or a path from a header would do what no rule allows.
TEST(Policy, HeadersThatMeanAnotherRequest) {
  const auto policy = policy_of(
      "  - {host: a.example.com, methods: [GET, POST], paths: [/x]}\n"
      "  - {host: b.example.com}\n");
  const Row row{"POST", "https://a.example.com:443/x", "", ""},
      free{"POST", "https://b.example.com:443/x", "", ""};
  const http::Headers deletes{{"x-http-method-override", "DELETE"}}, gets{{"X-HTTP-Method-Override", "GET"}},
      elsewhere{{"X-Original-URL", "/admin"}}, to_cgi{{"X_HTTP_Method_Override", "DELETE"}};
  EXPECT_EQ(ask(policy, row, &to_cgi).denial->code, codes::kMethod);
  EXPECT_EQ(ask(policy, row, &deletes).denial->code, codes::kMethod);
  EXPECT_EQ(ask(policy, row, &elsewhere).denial->code, codes::kMethod);
  EXPECT_TRUE(ask(policy, row, &gets).allowed());
  EXPECT_TRUE(ask(policy, free, &deletes).allowed());
}

TEST(Policy, WebsocketsByRule) {
  const auto policy = policy_of("  - {host: a.example.com}\n  - {host: b.example.com, websocket: true}\n");
  Asked asked{
      .scheme = "https", .to = {"a.example.com", 443}, .method = "GET", .target = "/", .websocket = true};
  EXPECT_EQ(policy.request(asked).denial->code, codes::kProtocol);
  asked.to.host = "b.example.com";
  EXPECT_TRUE(policy.request(asked).allowed());
}

TEST(Policy, Connections) {
  const auto policy = policy_of(R"(
  - {host: a.example.com, private: true}
  - {host: "*.pass.example.com", protocol: tls}
  - {host: db.example.com, protocol: tcp, port: 5432}
  - {cidr: 93.184.216.0/24, port: 22}
  - {cidr: 10.0.0.0/8, port: 22, private: true}
  - {cidr: "2606:2800:220::/48", port: 22}
  - {cidr: 198.51.100.255/32, port: 22, private: true}
)");
  const struct {
    const char* host;
    uint16_t port;
    Use use;
    const char* rule;
  } rows[] = {
      {"a.example.com", 443, Use::kHttp, "egress[0]"},
      {"a.example.com", 80, Use::kHttp, "egress[0]"},
      {"a.example.com", 22, Use::kDeny, "egress[0]"},
      {"x.pass.example.com", 443, Use::kPassThrough, "egress[1]"},
      {"x.pass.example.com", 80, Use::kDeny, "egress[1]"},
      {"db.example.com", 5432, Use::kTcp, "egress[2]"},
      {"93.184.216.34", 22, Use::kTcp, "egress[3]"},
      {"93.184.216.255", 22, Use::kTcp, "egress[3]"},
      {"93.184.217.0", 22, Use::kDeny, ""},
      {"93.184.216.34", 443, Use::kDeny, "egress[3]"},
      {"10.1.2.3", 22, Use::kTcp, "egress[4]"},
      {"2606:2800:220:1::5", 22, Use::kTcp, "egress[5]"},
      {"198.51.100.255", 22, Use::kTcp, "egress[6]"},
      {"198.51.100.254", 22, Use::kDeny, ""},
      {"127.0.0.1", 443, Use::kDeny, ""},
      {"::1", 443, Use::kDeny, ""},
      {"b.example.com", 443, Use::kDeny, ""},
  };
  for (const auto& row : rows) {
    const auto plan = policy.connection({row.host, row.port});
    EXPECT_EQ(plan.use, row.use) << row.host << " " << row.port;
    EXPECT_EQ(row.use == Use::kDeny ? plan.denial.rule : plan.route.rule, row.rule)
        << row.host << " " << row.port;
    if (row.use == Use::kDeny) {
      EXPECT_EQ(plan.denial.code, codes::kNoRule) << row.host;
    }
  }
  EXPECT_TRUE(policy.connection({"a.example.com", 443}).route.private_addresses);
  EXPECT_FALSE(policy.connection({"x.pass.example.com", 443}).route.private_addresses);
}

// What lies around them does not bring them.
TEST(Policy, inv02_SpecialAddressesNeedTheirOwnRule) {
  const auto wide = policy_of(R"(
  - {cidr: 0.0.0.0/0, port: 80, private: true}
  - {cidr: "::/0", port: 80, private: true}
  - {cidr: 168.63.0.0/16, port: 81}
)");
  for (const char* host :
       {"10.1.2.3", "192.168.0.1", "93.184.216.34", "100.64.0.1", "fd00::1", "2606:2800::1"})
    EXPECT_EQ(wide.connection({host, 80}).use, Use::kTcp) << host;
  for (const char* host :
       {"127.0.0.1", "127.255.255.255", "0.0.0.0", "169.254.1.1", "169.254.169.254", "100.100.100.200",
        "168.63.129.16", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00:ec2::254",
        "fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"}) {
    const auto plan = wide.connection({host, 80});
    EXPECT_EQ(plan.use, Use::kDeny) << host;
    EXPECT_EQ(plan.denial.code, codes::kPrivateAddress) << host;
    EXPECT_NE(plan.denial.what_to_do.find(host), std::string::npos) << plan.denial.what_to_do;
  }
  EXPECT_EQ(wide.connection({"168.63.129.16", 81}).use, Use::kDeny);
  const auto narrow = policy_of(R"(
  - {cidr: 10.0.0.0/8, port: 80, private: true}
  - {cidr: 127.0.0.1/32, port: 80, private: true}
  - {cidr: 169.254.169.254/32, port: 80, private: true}
  - {cidr: "fd00:ec2::254/128", port: 80, private: true}
)");
  for (const char* host : {"127.0.0.1", "169.254.169.254", "fd00:ec2::254"}) {
    EXPECT_EQ(narrow.connection({host, 80}).use, Use::kTcp) << host;
    EXPECT_EQ(narrow.connection({host, 22}).denial.code, codes::kNoRule) << host;
  }
  EXPECT_EQ(narrow.connection({"127.0.0.2", 80}).use, Use::kDeny);
}

TEST(Policy, Names) {
  const auto policy = policy_of(
      "  - {host: a.example.com}\n  - {host: \"*.b.example.com\"}\n  - {cidr: 93.184.216.0/24, port: 22}\n");
  for (const char* host : {"a.example.com", "x.b.example.com"})
    EXPECT_TRUE(policy.name(host).allowed()) << host;
  for (const char* host :
       {"example.com", "b.example.com", "x.y.b.example.com", "localhost", "93.184.216.34", ""})
    EXPECT_FALSE(policy.name(host).allowed()) << host;
}

// inv02: without a rule there is nothing.
TEST(Policy, inv02_NoRulesAllowNothing) {
  const Policy policy({});
  EXPECT_FALSE(policy.name("example.com").allowed());
  EXPECT_EQ(policy.connection({"example.com", 443}).use, Use::kDeny);
  EXPECT_EQ(policy.connection({"93.184.216.34", 443}).use, Use::kDeny);
  EXPECT_FALSE(ask(policy, {"GET", "https://example.com:443/", "", ""}).allowed());
}

}  // namespace
}  // namespace firestop::egress
