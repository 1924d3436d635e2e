// Connections that are forwarded unread, by rules with `protocol: tcp` or `tls`: dialled, tunnelled,
// recorded.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "codec/client_hello.h"
#include "egress/crossing.h"
#include "egress/dialer.h"
#include "egress/guard.h"
#include "egress/tunnel.h"

namespace firestop::egress {

class RawConnections {
 public:
  struct Guest {
    UniqueFd socket;     // non-blocking
    std::string first;   // what was read from it
    Authority asked;     // name behind the address, or the address; and port
    std::string scheme;  // "tcp", "tls"
    uint16_t source_port = 0;
    std::shared_ptr<void> place;  // kept until the connection has ended
  };

  // Dialer must outlive it.
  RawConnections(Loop& loop, Dialer& dialer, Recorder record, Tunnel::Limits limits = {});
  ~RawConnections();  // resets all of them; each is recorded
  RawConnections(const RawConnections&) = delete;
  RawConnections& operator=(const RawConnections&) = delete;

  // Recorded once, when it has ended. A guest whose origin cannot be reached sees a reset.
  void start(Guest guest, const Route& route);
  size_t size() const { return connections_.size(); }

 private:
  class Connection;
  void forget(const Connection* connection);

  Loop& loop_;
  Dialer& dialer_;
  Recorder record_;
  const Tunnel::Limits limits_;
  std::list<std::unique_ptr<Connection>> connections_;
};

// Of a pass-through: the server that the client names must be the name that its address was given for. No
// name is none: the origin would choose for itself.
std::optional<Denial> server_name_differs(const codec::ClientHello& hello, const Route& route,
                                          const Authority& asked);

}  // namespace firestop::egress
