// IPv4 and IPv6 addresses and networks, and who can be reached by them (IANA's special-purpose address
// registries, RFC 6890). Pure; used wherever an address is judged, so that there is one table.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firestop::codec {

class Address {
 public:
  using V6 = std::array<uint8_t, 16>;

  Address() = default;  // 0.0.0.0
  static Address v4(uint32_t number) { return Address(number); }
  static Address v6(const V6& bytes) { return Address(bytes); }
  // Four decimal numbers without leading zeros, or RFC 4291 text without zone and brackets. Nothing else:
  // what inet_aton(3) takes beyond that is odd_address().
  static std::optional<Address> parse(std::string_view text);

  bool is_v4() const { return v4_; }
  uint32_t number() const;                    // of IPv4
  const V6& bytes() const { return bytes_; }  // of IPv6
  unsigned bits() const { return v4_ ? 32 : 128; }
  bool bit(unsigned index) const;              // 0 is the first
  std::string to_string() const;               // RFC 5952
  std::string with_port(uint16_t port) const;  // "192.0.2.1:443", "[2001:db8::1]:443"
  auto operator<=>(const Address&) const = default;

 private:
  friend class Network;
  explicit Address(uint32_t number);
  explicit Address(const V6& bytes) : bytes_(bytes), v4_(false) {}
  V6 bytes_{};  // of IPv4 the first four
  bool v4_ = true;
};

// Who may be at an address.
enum class Reach {
  kPublic,   // everyone's
  kPrivate,  // of the network that the host is in: RFC 1918, RFC 6598, RFC 4193. A rule's `private: true` is
             // these
  kSpecial,  // loopback, link-local and so metadata services, multicast, documentation, translations, ...
};
struct Range {
  Reach reach = Reach::kPublic;
  const char* what = "public";  // "a loopback address"
};
Range range_of(const Address& address);
inline bool is_public(const Address& address) {
  return range_of(address).reach == Reach::kPublic;
}

// Whether inet_aton(3), and with it most programs, would read the host as an IPv4 address although it is not
// one in four decimal numbers: 2130706433, 0x7f000001, 127.1, 0177.0.0.1. By the last label alone, as the
// WHATWG URL standard does.
bool odd_address(std::string_view host);

// A network in CIDR notation: 0.0.0.0/0 to 192.0.2.1/32, ::/0 to ::1/128.
class Network {
 public:
  // Null when it is none; bits beyond the prefix must be zero, and IPv4 is not written as IPv6.
  // `why_not`, if given, gets the reason.
  static std::optional<Network> parse(std::string_view text, std::string* why_not = nullptr);

  // The first address's bits beyond the prefix (at most its bits) are taken as zero.
  static Network of(const Address& address, unsigned prefix);

  bool contains(const Address& address) const;
  const Address& first() const { return first_; }
  unsigned prefix() const { return prefix_; }
  std::string to_string() const;
  bool operator==(const Network&) const = default;

 private:
  Network(const Address& first, unsigned prefix) : first_(first), prefix_(prefix) {}
  Address first_;
  unsigned prefix_ = 0;
};

// What a rule for the network reaches there: special addresses only where it names the one address. Loopback,
// metadata services and the like come with no network that somebody wrote for what lies around them.
bool reaches(const Network& network, const Address& address);

// The range that has all of the network, or a public one if there is none.
Range range_of(const Network& network);

}  // namespace firestop::codec
