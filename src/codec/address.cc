#include "codec/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace firestop::codec {
namespace {

constexpr size_t kMostText = INET6_ADDRSTRLEN - 1;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct Row4 {
  uint32_t first;
  unsigned prefix;
  Range range;
};
constexpr uint32_t ip(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a << 24 | b << 16 | c << 8 | d;
}
constexpr Row4 kRanges4[] = {
    {ip(0, 0, 0, 0), 8, {Reach::kSpecial, "an address of this host (0.0.0.0/8)"}},
    {ip(10, 0, 0, 0), 8, {Reach::kPrivate, "a private address"}},
    {ip(100, 100, 100, 200),
     32,
     {Reach::kSpecial, "a cloud's metadata service"}},  // Alibaba, inside 100.64/10
    {ip(100, 64, 0, 0), 10, {Reach::kPrivate, "an address of a carrier's network (100.64.0.0/10)"}},
    {ip(127, 0, 0, 0), 8, {Reach::kSpecial, "a loopback address"}},
    {ip(168, 63, 129, 16), 32, {Reach::kSpecial, "a cloud's metadata service"}},  // Azure, in a public range
    {ip(169, 254, 0, 0), 16, {Reach::kSpecial, "a link-local address, where metadata services are"}},
    {ip(172, 16, 0, 0), 12, {Reach::kPrivate, "a private address"}},
    {ip(192, 0, 0, 0), 24, {Reach::kSpecial, "an address for protocols (192.0.0.0/24)"}},
    {ip(192, 0, 2, 0), 24, {Reach::kSpecial, "an address for documentation"}},
    {ip(192, 88, 99, 0), 24, {Reach::kSpecial, "a 6to4 relay"}},
    {ip(192, 168, 0, 0), 16, {Reach::kPrivate, "a private address"}},
    {ip(198, 18, 0, 0), 15, {Reach::kSpecial, "an address for benchmarks (198.18.0.0/15)"}},
    {ip(198, 51, 100, 0), 24, {Reach::kSpecial, "an address for documentation"}},
    {ip(203, 0, 113, 0), 24, {Reach::kSpecial, "an address for documentation"}},
    {ip(224, 0, 0, 0), 4, {Reach::kSpecial, "a multicast address"}},
    {ip(255, 255, 255, 255), 32, {Reach::kSpecial, "the broadcast address"}},
    {ip(240, 0, 0, 0), 4, {Reach::kSpecial, "a reserved address"}},
};

struct Row6 {
  Address::V6 first;
  unsigned prefix;
  Range range;
};
// In this order: what is narrower stands before what contains it.
constexpr Row6 kRanges6[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, {Reach::kSpecial, "a loopback address"}},
    {{}, 128, {Reach::kSpecial, "the unspecified address"}},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, {Reach::kSpecial, "an IPv4 address in IPv6 form"}},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, {Reach::kSpecial, "an IPv4 address in IPv6 form"}},  // SIIT
    {{}, 96, {Reach::kSpecial, "an IPv4 address in IPv6 form"}},
    {{0, 0x64, 0xff, 0x9b}, 32, {Reach::kSpecial, "an IPv4 address behind NAT64"}},
    {{1}, 64, {Reach::kSpecial, "an address that is discarded"}},
    {{0x20, 0x01, 0, 0}, 32, {Reach::kSpecial, "an IPv4 address behind Teredo"}},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, {Reach::kSpecial, "an address for documentation"}},
    {{0x20, 0x01}, 23, {Reach::kSpecial, "an address for protocols (2001::/23)"}},
    {{0x20, 0x02}, 16, {Reach::kSpecial, "an IPv4 address behind 6to4"}},
    {{0x3f, 0xff}, 20, {Reach::kSpecial, "an address for documentation"}},
    {{0xfd, 0x00, 0x0e, 0xc2},
     32,
     {Reach::kSpecial, "a cloud's metadata service"}},  // Amazon, inside fc00::/7
    {{0xfd, 0x20, 0x00, 0xce}, 32, {Reach::kSpecial, "a cloud's metadata service"}},  // Google
    {{0xfc}, 7, {Reach::kPrivate, "a private address"}},
    {{0xfe, 0x80}, 10, {Reach::kSpecial, "a link-local address"}},
    {{0xfe, 0xc0}, 10, {Reach::kSpecial, "a site-local address"}},
    {{0xff}, 8, {Reach::kSpecial, "a multicast address"}},
    {{0x20}, 3, {Reach::kPublic, "public"}},
    {{}, 0, {Reach::kSpecial, "an address that nobody was given"}},
};

bool same_prefix(const Address& a, const Address& b, unsigned prefix) {
  for (unsigned bit = 0; bit < prefix; ++bit)
    if (a.bit(bit) != b.bit(bit)) return false;
  return true;
}

std::optional<Network> not_network(std::string* why_not, const char* why) {
  if (why_not) *why_not = why;
  return std::nullopt;
}

}  // namespace

Address::Address(uint32_t number) {
  for (size_t i = 0; i < 4; ++i) bytes_[i] = static_cast<uint8_t>(number >> (24 - 8 * i));
}

std::optional<Address> Address::parse(std::string_view text) {
  if (text.size() > kMostText || text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string copy(text);
  V6 bytes{};
  if (text.find(':') == std::string_view::npos) {
    // glibc's inet_pton refuses leading zeros, short forms and other bases.
    if (::inet_pton(AF_INET, copy.c_str(), bytes.data()) != 1) return std::nullopt;
    return v4(ip(bytes[0], bytes[1], bytes[2], bytes[3]));
  }
  if (::inet_pton(AF_INET6, copy.c_str(), bytes.data()) != 1) return std::nullopt;
  return v6(bytes);
}

uint32_t Address::number() const {
  return ip(bytes_[0], bytes_[1], bytes_[2], bytes_[3]);
}

bool Address::bit(unsigned index) const {
  return (bytes_[index / 8] >> (7 - index % 8) & 1) != 0;
}

std::string Address::to_string() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (!::inet_ntop(v4_ ? AF_INET : AF_INET6, bytes_.data(), text, sizeof text)) std::abort();
  return text;
}

std::string Address::with_port(uint16_t port) const {
  return (v4_ ? to_string() : "[" + to_string() + "]") + ":" + std::to_string(port);
}

Range range_of(const Address& address) {
  if (address.is_v4()) {
    for (const Row4& row : kRanges4)
      if (same_prefix(address, Address::v4(row.first), row.prefix)) return row.range;
    return {};
  }
  for (const Row6& row : kRanges6)
    if (same_prefix(address, Address::v6(row.first), row.prefix)) return row.range;
  std::abort();  // the last row is everything
}

Range range_of(const Network& network) {
  const auto has = [&](const Address& first, unsigned prefix) {
    return prefix <= network.prefix() && same_prefix(network.first(), first, prefix);
  };
  if (network.first().is_v4()) {
    for (const Row4& row : kRanges4)
      if (has(Address::v4(row.first), row.prefix)) return row.range;
    return {};
  }
  for (const Row6& row : kRanges6)
    if (row.prefix > 0 && has(Address::v6(row.first), row.prefix)) return row.range;
  return {};
}

bool reaches(const Network& network, const Address& address) {
  if (!network.contains(address)) return false;
  return network.prefix() == address.bits() || range_of(address).reach != Reach::kSpecial;
}

bool odd_address(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (Address::parse(host)) return false;
  const size_t dot = host.rfind('.');
  std::string_view last = dot == std::string_view::npos ? host : host.substr(dot + 1);
  if (last.empty()) return false;
  if (std::all_of(last.begin(), last.end(), is_digit)) return true;
  if (!last.starts_with("0x") && !last.starts_with("0X")) return false;
  last.remove_prefix(2);
  return last.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

std::optional<Network> Network::parse(std::string_view text, std::string* why_not) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return not_network(why_not, "has no prefix length");
  const auto address = Address::parse(text.substr(0, slash));
  if (!address) return not_network(why_not, "has no address before the '/'");
  const std::string_view digits = text.substr(slash + 1);
  unsigned prefix = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (error != std::errc() || end != digits.data() + digits.size() || prefix > address->bits() ||
      (digits.size() > 1 && digits[0] == '0'))
    return not_network(why_not, address->is_v4() ? "has a prefix length that is not 0 to 32"
                                                 : "has a prefix length that is not 0 to 128");
  for (unsigned bit = prefix; bit < address->bits(); ++bit)
    if (address->bit(bit)) return not_network(why_not, "has bits set beyond its prefix");
  if (!address->is_v4() && prefix >= 96 &&
      same_prefix(*address, Address::v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}), 96))
    return not_network(why_not, "is an IPv4 address in IPv6 clothes; write it as IPv4");
  return Network(*address, prefix);
}

Network Network::of(const Address& address, unsigned prefix) {
  if (prefix > address.bits()) std::abort();
  Address::V6 bytes = address.bytes_;
  for (unsigned bit = prefix; bit < address.bits(); ++bit)
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] & ~(0x80u >> bit % 8));
  Address first = address;
  first.bytes_ = bytes;
  return Network(first, prefix);
}

bool Network::contains(const Address& address) const {
  return address.is_v4() == first_.is_v4() && same_prefix(address, first_, prefix_);
}

std::string Network::to_string() const {
  return first_.to_string() + "/" + std::to_string(prefix_);
}

}  // namespace firestop::codec
