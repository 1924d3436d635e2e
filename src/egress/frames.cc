#include "egress/frames.h"

#include <arpa/inet.h>

#include "egress/seam.h"

namespace firestop::egress {
namespace {

constexpr size_t kEthernet = 14, kIpv4 = 20, kUdp = 8;
constexpr uint8_t kUdpProtocol = 17;

void put16(std::string& out, size_t value) {
  out.push_back(static_cast<char>(value >> 8 & 0xff));
  out.push_back(static_cast<char>(value & 0xff));
}

uint16_t get16(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) << 8 | static_cast<uint8_t>(bytes[at + 1]));
}

std::string raw_address(const std::string& dotted) {
  std::string out(4, '\0');
  ::inet_pton(AF_INET, dotted.c_str(), out.data());
  return out;
}

std::string dotted(std::string_view raw) {
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, raw.data(), text, sizeof text);
  return text;
}

}  // namespace

uint16_t internet_checksum(std::string_view bytes, uint32_t sum) {
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += get16(bytes, i);
  if (bytes.size() % 2 != 0) sum += static_cast<uint32_t>(static_cast<uint8_t>(bytes.back())) << 8;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

std::string frame_of(const Packet& packet) {
  std::string out(kVnetHeader, '\0');
  out.append(reinterpret_cast<const char*>(kGatewayMac.data()), kGatewayMac.size());
  out.append(reinterpret_cast<const char*>(kGuestMac.data()), kGuestMac.size());
  put16(out, 0x0800);
  std::string header = "\x45";
  header.push_back('\0');
  put16(header, kIpv4 + packet.payload.size());
  put16(header, 0);       // identification
  put16(header, 0x4000);  // do not fragment
  header.push_back(64);   // hops
  header.push_back(static_cast<char>(packet.protocol));
  put16(header, 0);
  header += raw_address(packet.source) + raw_address(packet.destination);
  const uint16_t sum = internet_checksum(header);
  header[10] = static_cast<char>(sum >> 8);
  header[11] = static_cast<char>(sum & 0xff);
  return out + header + packet.payload;
}

std::string frame_of(const Datagram& datagram) {
  std::string body;
  put16(body, datagram.source_port);
  put16(body, datagram.port);
  put16(body, kUdp + datagram.payload.size());
  put16(body, 0);  // no checksum, which RFC 768 allows
  return frame_of(Packet{datagram.source, datagram.destination, kUdpProtocol, body + datagram.payload});
}

std::optional<Packet> packet_of(std::string_view frame) {
  if (frame.size() < kVnetHeader + kEthernet + kIpv4) return std::nullopt;
  const uint16_t type = get16(frame, kVnetHeader + 12);
  const std::string_view ip = frame.substr(kVnetHeader + kEthernet);
  const size_t header = static_cast<size_t>(ip[0] & 0x0f) * 4;
  const size_t whole = get16(ip, 2);
  if (type != 0x0800 || static_cast<uint8_t>(ip[0]) >> 4 != 4 || header < kIpv4 || whole < header ||
      whole > ip.size())
    return std::nullopt;
  return Packet{dotted(ip.substr(12, 4)), dotted(ip.substr(16, 4)), static_cast<uint8_t>(ip[9]),
                std::string(ip.substr(header, whole - header))};
}

std::optional<Datagram> datagram_of(std::string_view frame) {
  const auto packet = packet_of(frame);
  if (!packet || packet->protocol != kUdpProtocol || packet->payload.size() < kUdp) return std::nullopt;
  const std::string_view body = packet->payload;
  const size_t size = get16(body, 4);
  if (size < kUdp || size > body.size()) return std::nullopt;
  return Datagram{packet->source, packet->destination, get16(body, 0), get16(body, 2),
                  std::string(body.substr(kUdp, size - kUdp))};
}

}  // namespace firestop::egress
