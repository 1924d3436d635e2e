#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using Address = std::array<unsigned char, 16>;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_label_char(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

// Whether inet_aton(3), and with it most programs, would take the text for an IPv4 address: 2130706433,
// 0x7f000001, 127.1, 0177.0.0.1. The WHATWG URL standard goes by the last label alone, and so do we.
bool ends_in_a_number(std::string_view host) {
  const size_t dot = host.rfind('.');
  std::string_view last = dot == std::string_view::npos ? host : host.substr(dot + 1);
  if (last.empty()) return false;
  if (std::all_of(last.begin(), last.end(), is_digit)) return true;
  if (!last.starts_with("0x")) return false;
  last.remove_prefix(2);
  return last.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct Range {
  const char* network;
  int bits;
};
// IANA's special-purpose registries (RFC 6890) and multicast: addresses that are not the public Internet.
constexpr Range kNotPublic4[] = {
    {"0.0.0.0", 8},     {"10.0.0.0", 8},      {"100.64.0.0", 10},  {"127.0.0.0", 8},    {"169.254.0.0", 16},
    {"172.16.0.0", 12}, {"192.0.0.0", 24},    {"192.0.2.0", 24},   {"192.88.99.0", 24}, {"192.168.0.0", 16},
    {"198.18.0.0", 15}, {"198.51.100.0", 24}, {"203.0.113.0", 24}, {"224.0.0.0", 4},    {"240.0.0.0", 4}};
// Outside of 2000::/3 nothing is public; these lie inside.
constexpr Range kNotPublic6[] = {{"2001::", 23}, {"2001:db8::", 32}, {"2002::", 16}};

bool inside(const unsigned char* address, const unsigned char* network, int bits) {
  const auto whole = static_cast<size_t>(bits / 8);
  if (std::memcmp(address, network, whole) != 0) return false;
  const unsigned rest = static_cast<unsigned>(bits % 8);
  if (rest == 0) return true;
  const unsigned mask = 0xFFu << (8 - rest) & 0xFFu;
  return (address[whole] & mask) == (network[whole] & mask);
}

bool is_public(int family, const Address& address) {
  if (family == AF_INET6 && (address[0] & 0xE0) != 0x20) return false;
  const auto none = [&](const auto& ranges) {
    return std::none_of(std::begin(ranges), std::end(ranges), [&](const Range& range) {
      Address network{};
      ::inet_pton(family, range.network, network.data());
      return inside(address.data(), network.data(), range.bits);
    });
  };
  return family == AF_INET ? none(kNotPublic4) : none(kNotPublic6);
}

}  // namespace

std::string canonical_host(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  std::string out(host);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

std::string why_not_host(std::string_view written) {
  const std::string host = canonical_host(written);
  if (host.empty()) return "is empty";
  if (host.size() > 253) return "is longer than 253 characters";
  if (host.find("://") != std::string::npos) return "is an address with a scheme; a host is its name alone";
  if (host.find('/') != std::string::npos) return "contains '/'; paths and networks have fields of their own";
  if (std::any_of(host.begin(), host.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    return "is not ASCII; write the punycode form (xn--...)";
  Address address;
  if (::inet_pton(AF_INET, host.c_str(), address.data()) == 1 || host.find(':') != std::string::npos) {
    if (host.find(':') != std::string::npos && std::count(host.begin(), host.end(), ':') == 1)
      return "contains a port; ports have a field of their own";
    return "is an address, not a name";
  }
  if (ends_in_a_number(host)) return "is an odd way to write an address, which programs read differently";

  std::string_view name = host;
  const bool wildcard = name.starts_with("*.") || name.starts_with("**.") || name == "*" || name == "**";
  if (name == "*" || name == "**") return "matches every host";
  if (wildcard) name.remove_prefix(name.find('.') + 1);
  if (name.find('*') != std::string_view::npos) return "has '*' elsewhere than as the whole first label";
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view label = name.substr(at, end - at);
    if (label.empty()) return "has an empty label";
    if (label.size() > 63) return "has a label longer than 63 characters";
    if (!std::all_of(label.begin(), label.end(), is_label_char) || label.front() == '-' ||
        label.back() == '-')
      return "has other characters than letters, digits and '-' in a label, or '-' at its end";
    at = end + 1;
  }
  if (name == "localhost" || name.ends_with(".localhost"))
    return "is the sandbox itself, never the host's loopback";
  if (name.find('.') == std::string_view::npos)
    return wildcard ? "matches a whole top-level domain"
                    : "is a single label, which resolvers complete in their own ways";
  return {};
}

Cidr read_cidr(std::string_view text) {
  const auto bad = [](std::string why) { return Cidr{std::move(why), false}; };
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return bad("has no prefix length");
  const std::string network(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  Address address{};
  const int family = network.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (::inet_pton(family, network.c_str(), address.data()) != 1) return bad("has no address before the '/'");
  const int most = family == AF_INET ? 32 : 128;
  int bits = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (error != std::errc() || end != digits.data() + digits.size() || bits < 0 || bits > most ||
      (digits.size() > 1 && digits[0] == '0'))
    return bad("has a prefix length that is not 0 to " + std::to_string(most));
  for (int bit = bits; bit < most; ++bit)
    if (address[static_cast<size_t>(bit / 8)] >> (7 - bit % 8) & 1)
      return bad("has bits set beyond its prefix");
  const Address mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (family == AF_INET6 && bits >= 96 && inside(address.data(), mapped.data(), 96))
    return bad("is an IPv4 address in IPv6 clothes; write it as IPv4");
  return {{}, is_public(family, address)};
}

}  // namespace firestop::manifest
