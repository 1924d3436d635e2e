// What carries a guest's connections to their origins, put together for one guard: the host's resolver and
// proxy, its trust, this sandbox's authority, the carrier.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "egress/carrier.h"
#include "egress/certificate_authority.h"
#include "egress/host_dialer.h"
#include "egress/origin_tls.h"
#include "egress/raw_connections.h"
#include "egress/resolver.h"

namespace firestop::egress {

class WayOut {
 public:
  struct Settings {
    std::vector<std::string> hosts;             // whose TLS is opened
    std::string upstream_ca;                    // PEM that counts besides the host's store, or ""
    std::function<bool(uint64_t bytes)> spend;  // limits.network.bytes, unless the link has it; may be empty
  };
  // Reads the host's environment and certificates. Loop and guard outlive it.
  static Result<std::unique_ptr<WayOut>> make(Loop& loop, Guard& guard, Settings settings,
                                              const Recorder& record);

  Carrier& carrier() { return *carrier_; }
  const CertificateAuthority& authority() const { return *authority_; }
  // Ends every connection; each is recorded.
  void close();

 private:
  explicit WayOut(Loop& loop) : resolver_(loop) {}

  // Each uses those above it, and goes before them.
  SystemResolver resolver_;
  std::unique_ptr<HostDialer> dialer_;
  std::unique_ptr<CertificateAuthority> authority_;
  std::unique_ptr<OriginTls> origin_tls_;
  std::unique_ptr<RawConnections> raw_;
  std::unique_ptr<Carrier> carrier_;
};

}  // namespace firestop::egress
