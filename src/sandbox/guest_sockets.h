// Which of the guest's processes made a crossing: the collectors tell sockets (a claim of the guest's), the
// egress process tells crossings with the port that they came from. A port is used again, and by several
// sockets at once when they are connected to different places, so that the place counts too.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "channel/observation.h"
#include "codec/address.h"
#include "egress/crossing.h"

namespace firestop::sandbox {

class GuestSockets {
 public:
  void take(const channel::observed::Connect& socket);
  // Of the newest socket that fits; 0: none was told. What a name was answered with is learnt on the way: it
  // is where the guest's sockets for that name go.
  uint32_t process_of(const egress::Crossing& crossing);

  static constexpr size_t kMostOfPort = 8;  // newest ones
  static constexpr size_t kMostNames = 65536;

 private:
  struct Socket {
    codec::Address address;
    uint32_t pid = 0;
    uint16_t port = 0;
    bool udp = false;
  };
  bool fits(const Socket& socket, const egress::Crossing& crossing) const;

  std::unordered_map<uint16_t, std::deque<Socket>> by_port_;
  std::unordered_map<std::string, codec::Address> names_;
};

}  // namespace firestop::sandbox
