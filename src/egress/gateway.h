// Everything that stands between a guest's sockets and the world, put together for one policy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/loop.h"
#include "base/result.h"
#include "codec/json.h"
#include "credentials/vault.h"
#include "egress/address_book.h"
#include "egress/crossing.h"
#include "egress/dns_server.h"
#include "egress/doors.h"
#include "egress/guard.h"
#include "egress/name_answers.h"
#include "egress/process.h"
#include "egress/way_out.h"

namespace firestop::egress {

struct GuestSockets {  // of Seam
  UniqueFd tcp, sink, dns_tcp, dns_udp;
};

class Gateway {
 public:
  // Reads what it needs of this host's files (certificates), and makes this sandbox's authority.
  static Result<std::unique_ptr<Gateway>> make(Loop& loop, ProcessConfig config, Recorder record);
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
  void carry(Arrived arrived);

  Loop& loop_;
  Recorder record_;
  std::vector<std::string> readable_;
  uint32_t connections_ = 0;
  // In the order of who needs whom: the last is gone first.
  std::unique_ptr<credentials::Vault> vault_;
  std::unique_ptr<Guard> guard_;
  AddressBook book_;
  std::unique_ptr<NameAnswers> answers_;
  std::unique_ptr<WayOut> way_out_;
  std::unique_ptr<DnsServer> dns_;
  std::unique_ptr<Doors> doors_;
};

}  // namespace firestop::egress
