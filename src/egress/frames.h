// Ethernet frames with IPv4 in them, as a tap takes and gives them before anybody changed its settings: for
// what looks at the guest's network from the guest's side. RFC 791, RFC 768.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firestop::egress {

inline constexpr size_t kVnetHeader = 10;  // struct virtio_net_hdr before every frame; all zero is fine
inline constexpr size_t kMostFrame = 2048;

struct Packet {
  std::string source, destination;  // dotted
  uint8_t protocol = 0;             // 6 TCP, 17 UDP
  std::string payload;              // with the transport's header
};
struct Datagram {
  std::string source, destination;
  uint16_t source_port = 0, port = 0;
  std::string payload;
};

// A frame from the guest to its gateway. The transport's checksum is the caller's.
std::string frame_of(const Packet& packet);
std::string frame_of(const Datagram& datagram);

// What a frame holds, or nothing if it is of another kind. Lengths are checked, checksums not.
std::optional<Packet> packet_of(std::string_view frame);
std::optional<Datagram> datagram_of(std::string_view frame);

// RFC 1071. `sum` is carried on: of a pseudo header.
uint16_t internet_checksum(std::string_view bytes, uint32_t sum = 0);

}  // namespace firestop::egress
