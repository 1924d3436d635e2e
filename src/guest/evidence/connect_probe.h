// Which process connects to where, from which port: TCP's connect(2), and what is sent by UDP. Two small BPF
// programs, before the kernel sends the first packet; the source port is chosen by then. Sockets of AF_INET6
// that are connected to IPv4 addresses come by the same functions. What stays in the machine (127.0.0.0/8,
// its own address) is no crossing and not told.
#pragma once

#include <cstdint>
#include <functional>

#include "base/fd.h"
#include "base/result.h"
#include "guest/evidence/bpf.h"
#include "guest/evidence/btf.h"

namespace firestop::guest {

// Of UDP, one for each change of who sends from a port to where, not for each datagram.
struct Connection {
  uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  uint32_t pid = 0;
  uint32_t address = 0;  // IPv4, as it is sent: the first byte is the lowest in memory
  uint16_t port = 0, source_port = 0;
  bool udp = false;
};

class ConnectProbe {
 public:
  static Result<ConnectProbe> make(const Btf& types);
  bool works() const { return tcp_.valid(); }
  int fd() const { return ring_.fd(); }
  void take(const std::function<void(const Connection&)>& each);
  // Those that did not fit, since this was last asked.
  uint64_t take_lost() { return lost_.take(); }

 private:
  static constexpr uint32_t kRing = 512u << 10;  // 16,000 of them
  BpfRing ring_;
  BpfCounter lost_;
  UniqueFd told_, tcp_, udp_;
};

}  // namespace firestop::guest
