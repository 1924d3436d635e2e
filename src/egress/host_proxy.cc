#include "egress/host_proxy.h"

#include <algorithm>

#include "codec/base64.h"

namespace firestop::egress {
namespace {

constexpr uint16_t kDefaultPort = 80;

std::optional<std::string> value_of(const HostProxy::Environment& environment,
                                    std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (auto value = environment(name); value && !value->empty()) return value;
  return std::nullopt;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0) return std::nullopt;
    out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    i += 2;
  }
  return out;
}

// Never says the value: a password may be in it.
Unexpected bad(const char* variable, const char* why) {
  return fail("egress.proxy", std::string(variable) + " of the host " + why,
              "expected http://HOST:PORT, with USER:PASSWORD@ before the host if the proxy wants a login");
}

Result<ProxyServer> read_server(const char* variable, std::string_view text) {
  if (const size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    if (text.substr(0, scheme) != "http")
      return bad(variable, "names a proxy that is not spoken to by plain HTTP");
    text.remove_prefix(scheme + 3);
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  ProxyServer server;
  if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
    const auto login = percent_decoded(text.substr(0, at));
    if (!login) return bad(variable, "has a login with a broken escape");
    server.authorization =
        "Basic " + codec::encode_base64(login->find(':') == std::string::npos ? *login + ":" : *login);
    text.remove_prefix(at + 1);
  }
  const auto authority = http::parse_authority(text, kDefaultPort);
  if (!authority) return bad(variable, "is no address of a proxy");
  server.at = *authority;
  return server;
}

}  // namespace

Result<HostProxy> HostProxy::from(const Environment& environment) {
  HostProxy proxy;
  if (const auto value = value_of(environment, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})) {
    TRY_ASSIGN(proxy.https_, read_server("HTTPS_PROXY", *value));
  }
  if (const auto value = value_of(environment, {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"})) {
    TRY_ASSIGN(proxy.http_, read_server("HTTP_PROXY", *value));
  }
  const std::string exceptions = value_of(environment, {"no_proxy", "NO_PROXY"}).value_or("");
  for (size_t at = 0; at < exceptions.size();) {
    const size_t end = std::min(exceptions.find_first_of(", \t", at), exceptions.size());
    if (const auto exception = read_exception(std::string_view(exceptions).substr(at, end - at)))
      proxy.exceptions_.push_back(*exception);
    at = end + 1;
  }
  return proxy;
}

// What is not understood is no exception: then the proxy decides.
std::optional<HostProxy::Exception> HostProxy::read_exception(std::string_view text) {
  if (text == "*") return Exception{};
  if (const auto network = codec::Network::parse(text)) return Exception{.network = network};
  while (text.starts_with('.') || text.starts_with('*')) text.remove_prefix(1);
  const auto authority = http::parse_authority(text, 0);
  std::string host = authority ? authority->host : std::string(text);
  const uint16_t port = authority ? authority->port : uint16_t{0};
  if (const auto address = codec::Address::parse(host))
    return Exception{.network = codec::Network::parse(host + "/" + std::to_string(address->bits())),
                     .port = port};
  if (!authority) return std::nullopt;
  return Exception{.name = std::move(host), .port = port};
}

bool HostProxy::matches(const Exception& exception, const Authority& to) {
  if (exception.port != 0 && exception.port != to.port) return false;
  if (exception.network) {
    const auto address = codec::Address::parse(to.host);
    return address && exception.network->contains(*address);
  }
  return exception.name.empty() || to.host == exception.name || to.host.ends_with("." + exception.name);
}

const ProxyServer* HostProxy::for_route(const Route& route) const {
  const auto& server = route.tls ? https_ : http_;
  if (!server) return nullptr;
  const bool direct = std::any_of(exceptions_.begin(), exceptions_.end(),
                                  [&](const Exception& exception) { return matches(exception, route.to); });
  return direct ? nullptr : &*server;
}

}  // namespace firestop::egress
