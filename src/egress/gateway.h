// Everything that stands between a guest's sockets and the world, put together for one policy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/loop.h"
#include "base/result.h"
#include "codec/json.h"
#include "egress/address_book.h"
#include "egress/carrier.h"
#include "egress/certificate_authority.h"
#include "egress/crossing.h"
#include "egress/dns_server.h"
#include "egress/doors.h"
#include "egress/guard.h"
#include "egress/host_dialer.h"
#include "egress/name_answers.h"
#include "egress/origin_tls.h"
#include "egress/process.h"
#include "egress/raw_connections.h"
#include "egress/resolver.h"
#include "manifest/manifest.h"

namespace firestop::egress {

struct GuestSockets {  // of Seam
  UniqueFd tcp, sink, dns_tcp, dns_udp;
};

class Gateway {
 public:
  // Reads what it needs of this host: its certificates, its proxy's address. Makes this sandbox's authority.
  static Result<std::unique_ptr<Gateway>> make(Loop& loop, const ProcessConfig& config,
                                               const manifest::Manifest& policy, Recorder record);
  ~Gateway();

  // Files that it reads later.
  const std::vector<std::string>& readable() const { return readable_; }
  // What the sandbox must know: "authority" (certificate, PEM) and "authority_hash" (of its subject).
  codec::JsonObject ready() const;
  void open(GuestSockets sockets);
  // Ends every connection; each is recorded.
  void close();

 private:
  Gateway(Loop& loop, Recorder record);
  Result<void> reach_out(const ProcessConfig& config);
  Result<void> make_authority(const manifest::Manifest& policy);

  Loop& loop_;
  Recorder record_;
  std::vector<std::string> readable_;
  uint32_t connections_ = Doors::kConnectionsUnlessSaid;
  std::unique_ptr<Guard> guard_;
  // Each uses those above it, and goes before them.
  AddressBook book_;
  SystemResolver resolver_;
  std::unique_ptr<HostDialer> dialer_;
  std::unique_ptr<CertificateAuthority> authority_;
  std::unique_ptr<OriginTls> origin_tls_;
  std::unique_ptr<RawConnections> raw_;
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<NameAnswers> answers_;
  std::unique_ptr<DnsServer> dns_;
  std::unique_ptr<Doors> doors_;
};

}  // namespace firestop::egress
