#include <algorithm>

#include "codec/address.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_label_char(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

// co.uk, com.au, ...: where a country's names are registered on the second level. In doubt it is one: a
// wildcard over it is never what somebody meant.
bool is_registry(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || name.size() - dot != 3) return false;
  constexpr std::string_view kSecond[] = {"ac",  "co", "com", "edu", "go",  "gob", "gov", "gouv",
                                          "mil", "ne", "net", "nhs", "nom", "or",  "org", "sch"};
  return std::find(std::begin(kSecond), std::end(kSecond), name.substr(0, dot)) != std::end(kSecond);
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
  if (codec::Address::parse(host) || host.find(':') != std::string::npos) {
    if (host.find(':') != std::string::npos && std::count(host.begin(), host.end(), ':') == 1)
      return "contains a port; ports have a field of their own";
    return "is an address, not a name";
  }
  if (codec::odd_address(host)) return "is an odd way to write an address, which programs read differently";

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
  if (wildcard && is_registry(name)) return "matches all that is registered below ." + std::string(name);
  if (name.find('.') == std::string_view::npos)
    return wildcard ? "matches a whole top-level domain"
                    : "is a single label, which resolvers complete in their own ways";
  return {};
}

Cidr read_cidr(std::string_view text) {
  Cidr read;
  if (const auto network = codec::Network::parse(text, &read.why_not)) {
    read.public_address = codec::is_public(network->first());
    const auto range = codec::range_of(*network);
    if (range.reach == codec::Reach::kSpecial && network->prefix() < network->first().bits())
      read.special = range.what;
  }
  return read;
}

}  // namespace firestop::manifest
