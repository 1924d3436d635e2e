// The guest's network: a user and network namespace of its own, without a way out of it, in which a tap
// stands. Whatever the guest sends comes out at one of four sockets, or nowhere:
//
//   TCP to port 53             dns_tcp
//   any other TCP              tcp; original_destination() says where to
//   UDP to port 53             dns_udp
//   any other UDP              sink; IP_ORIGDSTADDR says where to
//   ICMP, IPv6, ARP, the rest  dropped
//
// Nothing is forwarded, there is no other interface, and nobody stays inside: the namespace lives by these
// descriptors, so it goes with the last process that has one, however that ends. nft(8),
// network_namespaces(7).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::egress {

// The two ends of the link, the same for all sandboxes since each has its namespace. 192.0.0.0/29 is for
// links between two sides of one host (RFC 7335): no rule can mean it.
inline constexpr const char* kGuestAddress = "192.0.0.2";
inline constexpr const char* kGatewayAddress = "192.0.0.1";  // also the guest's resolver
inline constexpr std::array<uint8_t, 6> kGuestMac = {0x02, 0x66, 0x73, 0, 0, 2};
inline constexpr std::array<uint8_t, 6> kGatewayMac = {0x02, 0x66, 0x73, 0, 0, 1};
inline constexpr uint32_t kMostTracked = 4096;  // connections that the kernel keeps for one guest

// How it is made, in order; each can fail, and then nothing is left.
enum class SeamStep : int { kSettings = 1, kTap, kAddress, kNeighbour, kRoute, kSockets, kHandOver, kRules };
const char* to_string(SeamStep step);

struct SeamOptions {
  uint64_t rate = 0;               // bytes a second, each way; 0: no cap
  uint64_t bytes = 0;              // in all, both ways; then nothing passes any more; 0: no cap
  std::optional<SeamStep> broken;  // for tests: this step fails
};

struct Seam {
  UniqueFd tap;                          // QEMU's; frames have a virtio-net header (IFF_VNET_HDR)
  UniqueFd tcp, dns_tcp, dns_udp, sink;  // non-blocking; the first two listen
  UniqueFd meter;                        // for bytes_of()
};

// Needs no privilege but the right to make user namespaces and to open /dev/net/tun. Errors: "egress.seam"
// with the step, "process.not_found" without nft.
Result<Seam> make_seam(const SeamOptions& options = {});

// The rules in nft's language.
std::string seam_rules(const SeamOptions& options);

// What went over the link so far, both ways together, as the host's kernel counted it, headers included.
Result<uint64_t> bytes_of(int meter);

struct Destination {
  std::string address;  // dotted
  uint16_t port = 0;
  uint16_t source_port = 0;  // of the guest's socket
};
// Where the guest wanted this connection of Seam::tcp or dns_tcp to go. Error: "egress.seam".
Result<Destination> original_destination(int connection);

}  // namespace firestop::egress
