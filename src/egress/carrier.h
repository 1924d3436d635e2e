// Carries the guest's connections: tells by the first bytes what each is, opens TLS with the sandbox's
// authority, reads HTTP and has every request judged, forwards unread what a rule says so of, and records all
// of it. Knows no rule and no credential: that is the guard's. One loop, one sandbox.
//
// Memory of a connection that idles is some 2 KiB, with TLS some 20 KiB; one that is busy holds up to 1 MiB,
// and bodies that wait up to kMostHeld, all together.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/loop.h"
#include "egress/certificate_authority.h"
#include "egress/crossing.h"
#include "egress/dialer.h"
#include "egress/exchange_relay.h"
#include "egress/guard.h"
#include "egress/later.h"
#include "egress/origin_pool.h"
#include "egress/origin_tls.h"
#include "egress/raw_connections.h"

namespace firestop::egress {

class Carrier {
 public:
  static constexpr std::chrono::seconds kFirstBytes{15};  // until it is clear what a connection is
  static constexpr std::chrono::seconds kHandshake{15};
  // Bytes of all bodies that wait (http/hold_budget.h); with what is copied on the way an eighth to a half of
  // what the process may have (lock_down.h).
  static constexpr size_t kMostHeld = 128u << 20;

  struct Parts {  // all outlive the carrier
    Guard& guard;
    Dialer& dialer;
    CertificateAuthority& authority;
    OriginTls& origin_tls;
    RawConnections& raw;
    Recorder record;
    std::function<bool(uint64_t bytes)> spend;  // limits.network.bytes; false: no more. May be empty
    RelayTimes times{};
    size_t most_held = kMostHeld;
    std::chrono::milliseconds first_bytes = kFirstBytes;
    std::chrono::milliseconds head_time = std::chrono::seconds(30), idle = std::chrono::seconds(120);
  };
  struct Guest {
    UniqueFd socket;  // non-blocking
    Authority to;     // the name behind the address, else the address; and the port
    uint16_t source_port = 0;
    std::shared_ptr<void> place;  // kept until the connection has ended
  };

  Carrier(Loop& loop, Parts parts);
  ~Carrier();  // ends all connections; what they were doing is recorded
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // A connection that the guest believes to go to `to`.
  void carry(Guest guest);
  // A client that knows of the proxy: CONNECT, or requests in absolute-form. `to` is not looked at.
  void carry_as_proxy(Guest guest);

  size_t connections() const { return connections_.size(); }
  size_t exchanges() const { return relays_.size(); }
  size_t origin_connections() const { return pool_.connections(); }

 private:
  class Connection;
  enum class Way { kTransparent, kProxy };
  void start(Guest guest, Way way);
  void forget(Connection* connection);
  void relay(const Origin& origin, OriginPool::Wire wire, http::RequestHead head,
             std::unique_ptr<http::ServerStream> stream, const Denial* refusal);

  Loop& loop_;
  Parts parts_;
  Later later_;
  OriginPool pool_;
  http::HoldBudget holding_;
  std::list<std::unique_ptr<Connection>> connections_;
  std::list<std::unique_ptr<ExchangeRelay>> relays_;
  bool ending_ = false;
};

}  // namespace firestop::egress
