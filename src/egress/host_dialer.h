// The dialer that dials: resolve, judge every address, connect to one that was judged. A second look-up
// between the judging and the connecting would let a name lead elsewhere (DNS rebinding), so there is none.
#pragma once

#include <chrono>

#include "egress/dialer.h"
#include "egress/host_proxy.h"
#include "egress/resolver.h"

namespace firestop::egress {

struct DialTimes {
  std::chrono::milliseconds resolve{12000};  // the C library turns to the second server after 5 s
  std::chrono::milliseconds connect{6000};   // for all addresses together
  std::chrono::milliseconds stagger{250};    // before the next address is tried beside (RFC 8305)
  std::chrono::milliseconds proxy{15000};    // for the host's proxy to connect in its turn
};

// Which addresses: public ones. With `private_addresses` a name may also lead to the private networks of
// RFC 1918, RFC 6598 and RFC 4193, and never to loopback or link-local; a rule for a network that includes
// them may be dialled wherever it says. `connect_to` is the operator's word and not judged. Through the
// host's proxy a name is not looked up here: the proxy looks it up, and judges.
//
// Denials: egress.private_address (403), egress.unresolved (502), egress.unreachable (502 refused, 504
// silent).
class HostDialer final : public Dialer {
 public:
  static constexpr size_t kMostTried = 8;              // addresses
  static constexpr size_t kMostProxyHead = 16u << 10;  // bytes of the proxy's answer to CONNECT

  // Loop and resolver must outlive it, it all attempts.
  HostDialer(Loop& loop, Resolver& resolver, HostProxy proxy = {}, DialTimes times = {})
      : loop_(loop), resolver_(resolver), proxy_(std::move(proxy)), times_(times) {}

  // Calls neither before it has returned.
  std::unique_ptr<Attempt> dial(const Route& route, Done done, Failed failed) override;

 private:
  class Dialling;

  Loop& loop_;
  Resolver& resolver_;
  const HostProxy proxy_;
  const DialTimes times_;
};

}  // namespace firestop::egress
