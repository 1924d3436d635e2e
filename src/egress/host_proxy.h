// The proxy that the host itself must go through: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/address.h"
#include "egress/guard.h"

namespace firestop::egress {

struct ProxyServer {
  Authority at;
  std::string authorization;  // "Basic ..." for Proxy-Authorization, a secret; or ""
};

class HostProxy {
 public:
  // A variable's value, or nothing.
  using Environment = std::function<std::optional<std::string>(const char* name)>;

  HostProxy() = default;  // none
  // Lower case counts before upper case, as with curl; an empty value is none. Values are "http://HOST:PORT"
  // or "HOST:PORT", with "USER:PASSWORD@" before the host. Error "egress.proxy": what is written there is no
  // such address, or of a kind that we cannot speak to (https, socks), which must not be passed over in
  // silence.
  static Result<HostProxy> from(const Environment& environment);

  // Null: dialled directly.
  const ProxyServer* for_route(const Route& route) const;

 private:
  // NO_PROXY: "*", names that stand for themselves and all below, addresses and networks, each with ":PORT"
  // or without.
  struct Exception {
    std::string name;  // "" is every name
    std::optional<codec::Network> network;
    uint16_t port = 0;  // 0: every
  };
  static std::optional<Exception> read_exception(std::string_view text);
  static bool matches(const Exception& exception, const Authority& to);

  std::optional<ProxyServer> https_, http_;
  std::vector<Exception> exceptions_;
};

}  // namespace firestop::egress
