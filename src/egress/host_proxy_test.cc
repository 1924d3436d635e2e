#include "egress/host_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace firestop::egress {
namespace {

using Variables = std::map<std::string, std::string>;

Result<HostProxy> proxy_of(const Variables& variables) {
  return HostProxy::from([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}
Route route(const std::string& host, uint16_t port = 443, bool tls = true) {
  Route out;
  out.to = {host, port};
  out.tls = tls;
  return out;
}
// "host:port authorization" of the proxy for it, or "direct".
std::string way(const Variables& variables, const Route& to) {
  const auto proxy = proxy_of(variables);
  if (!proxy) return proxy.error().code;
  const ProxyServer* server = proxy->for_route(to);
  if (!server) return "direct";
  return server->at.host + ":" + std::to_string(server->at.port) +
         (server->authorization.empty() ? "" : " " + server->authorization);
}

TEST(HostProxy, WhichVariable) {
  const Route tls = route("api.example.com"), plain = route("api.example.com", 80, false);
  EXPECT_EQ(way({}, tls), "direct");
  EXPECT_EQ(way({{"HTTPS_PROXY", ""}}, tls), "direct");
  EXPECT_EQ(way({{"HTTPS_PROXY", "http://proxy.corp:3128"}}, tls), "proxy.corp:3128");
  EXPECT_EQ(way({{"HTTPS_PROXY", "http://proxy.corp:3128/"}}, plain), "direct");
  EXPECT_EQ(way({{"HTTP_PROXY", "proxy.corp"}}, plain), "proxy.corp:80");
  EXPECT_EQ(way({{"HTTP_PROXY", "proxy.corp"}}, tls), "direct");
  EXPECT_EQ(way({{"https_proxy", "http://a:1"}, {"HTTPS_PROXY", "http://b:2"}}, tls), "a:1");
  EXPECT_EQ(way({{"ALL_PROXY", "http://[2001:db8::1]:8080"}}, tls), "2001:db8::1:8080");
  EXPECT_EQ(way({{"all_proxy", "http://a:1"}, {"HTTPS_PROXY", "http://b:2"}}, tls), "b:2");
}

TEST(HostProxy, ALogin) {
  // user:pa:ss@word, percent-encoded where it must be.
  EXPECT_EQ(way({{"HTTPS_PROXY", "http://user:pa%3Ass%40word@proxy:1"}}, route("a.example")),
            "proxy:1 Basic dXNlcjpwYTpzc0B3b3Jk");
  EXPECT_EQ(way({{"HTTPS_PROXY", "user@proxy:1"}}, route("a.example")), "proxy:1 Basic dXNlcjo=");
}

TEST(HostProxy, WhatCannotBeUsedIsAnErrorThatDoesNotTellThePassword) {
  for (const char* value :
       {"socks5://proxy:1", "https://proxy:1", "http://", "http://proxy:99999", "http://pro xy:1",
        "http://user:sEcReT@:1", "http://user:sEcReT%4@proxy:1", "http://user:sEcReT@proxy:1/path"}) {
    const auto proxy = proxy_of({{"HTTPS_PROXY", value}});
    ASSERT_FALSE(proxy) << value;
    EXPECT_EQ(proxy.error().code, "egress.proxy");
    EXPECT_THAT(proxy.error().to_string(), ::testing::Not(::testing::HasSubstr("sEcReT"))) << value;
  }
}

TEST(HostProxy, Exceptions) {
  const struct {
    const char *no_proxy, *host;
    uint16_t port;
    bool direct;
  } table[] = {
      {"*", "a.example", 443, true},
      {"a.example", "a.example", 443, true},
      {"a.example", "b.a.example", 443, true},
      {".a.example", "b.a.example", 443, true},
      {"*.a.example", "b.a.example", 443, true},
      {"A.Example", "a.example", 443, true},
      {"a.example", "ba.example", 443, false},
      {"a.example", "a.example.com", 443, false},
      {"a.example:8443", "a.example", 443, false},
      {"a.example:8443", "a.example", 8443, true},
      {"b.example, a.example", "a.example", 443, true},
      {"b.example a.example", "a.example", 443, true},
      {",,", "a.example", 443, false},
      {"10.0.0.0/8", "10.1.2.3", 443, true},
      {"10.0.0.0/8", "11.1.2.3", 443, false},
      {"10.0.0.0/8", "a.example", 443, false},
      {"192.0.2.1", "192.0.2.1", 443, true},
      {"192.0.2.1:80", "192.0.2.1", 443, false},
      {"2001:db8::1", "2001:db8::1", 443, true},
      {"[2001:db8::1]:443", "2001:db8::1", 443, true},
      {"::/0", "2001:db8::1", 443, true},
      {"!!", "a.example", 443, false},
  };
  for (const auto& row : table)
    EXPECT_EQ(way({{"HTTPS_PROXY", "p:1"}, {"NO_PROXY", row.no_proxy}}, route(row.host, row.port)),
              row.direct ? "direct" : "p:1")
        << row.no_proxy << " " << row.host;
}

}  // namespace
}  // namespace firestop::egress
