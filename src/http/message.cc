#include "http/message.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace firestop::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

bool is_ipv6(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

constexpr size_t kMostHost = 255;  // RFC 1035 section 2.3.4

}  // namespace

std::optional<Authority> parse_authority(std::string_view text, uint16_t default_port) {
  const bool bracketed = text.starts_with('[');
  const size_t end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && end == std::string_view::npos) return std::nullopt;
  Authority out{std::string(text.substr(bracketed, end == std::string_view::npos ? end : end - bracketed)),
                default_port};
  const std::string_view rest = end == std::string_view::npos ? "" : text.substr(end + (bracketed ? 1 : 0));
  if (!rest.empty()) {
    const auto port = rest[0] == ':' ? parse_port(rest.substr(1)) : std::nullopt;
    if (!port) return std::nullopt;
    out.port = *port;
  }
  std::transform(out.host.begin(), out.host.end(), out.host.begin(), lower);
  if (bracketed) return is_ipv6(out.host) ? std::optional(std::move(out)) : std::nullopt;
  if (out.host.ends_with('.')) out.host.pop_back();
  if (out.host.empty() || out.host.size() > kMostHost ||
      !std::all_of(out.host.begin(), out.host.end(), is_host_character))
    return std::nullopt;
  return out;
}

std::string to_string(const Authority& authority, uint16_t default_port) {
  const bool v6 = authority.host.find(':') != std::string::npos;
  std::string out = v6 ? "[" + authority.host + "]" : authority.host;
  if (authority.port != default_port) out += ":" + std::to_string(authority.port);
  return out;
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

const Header* find_header(const Headers& headers, std::string_view name) {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const Header& h) { return same_name(h.name, name); });
  return found == headers.end() ? nullptr : &*found;
}

void remove_headers(Headers& headers, std::string_view name) {
  std::erase_if(headers, [&](const Header& h) { return same_name(h.name, name); });
}

}  // namespace firestop::http
