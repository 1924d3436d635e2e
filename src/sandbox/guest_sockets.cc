#include "sandbox/guest_sockets.h"

#include <optional>

namespace firestop::sandbox {
namespace {

constexpr uint16_t kDns = 53;

}  // namespace

void GuestSockets::take(const channel::observed::Connect& socket) {
  const auto address = codec::Address::parse(socket.address);
  if (!address || socket.pid == 0 || socket.source_port == 0) return;
  auto& list = by_port_[socket.source_port];
  list.push_front({*address, socket.pid, socket.port, socket.protocol == "udp"});
  if (list.size() > kMostOfPort) list.pop_back();
}

bool GuestSockets::fits(const Socket& socket, const egress::Crossing& crossing) const {
  // Questions end here whomever they were for, and come either way.
  if (crossing.scheme == "dns") return socket.port == kDns;
  if (socket.udp != (crossing.scheme == "udp")) return false;
  if (crossing.port != 0 && socket.port != crossing.port) return false;
  if (const auto known = names_.find(crossing.host); known != names_.end())
    return socket.address == known->second;
  const auto address = codec::Address::parse(crossing.host);
  return !address || socket.address == *address;
}

uint32_t GuestSockets::process_of(const egress::Crossing& crossing) {
  if (crossing.kind == egress::Crossing::Kind::kName && !crossing.address.empty())
    if (const auto address = codec::Address::parse(crossing.address); address && names_.size() < kMostNames)
      names_.insert_or_assign(crossing.host, *address);
  const auto found = by_port_.find(crossing.source_port);
  if (crossing.source_port == 0 || found == by_port_.end()) return 0;
  for (const Socket& socket : found->second)
    if (fits(socket, crossing)) return socket.pid;
  return 0;
}

}  // namespace firestop::sandbox
