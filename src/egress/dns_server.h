// DNS for a guest, on sockets that were made in its network: whatever server it asks, it asks this one.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/loop.h"
#include "egress/name_answers.h"

namespace firestop::egress {

class DnsServer {
 public:
  static constexpr size_t kMostConnections = 32;    // by TCP at once; the longest idle one gives way
  static constexpr std::chrono::seconds kIdle{10};  // then a connection by TCP is closed
  static constexpr size_t kMostUnsent = 64u << 10;  // bytes of answers that a connection may leave unread
  static constexpr int kMostInOneTurn = 64;         // datagrams, before others get their turn

  // `udp` is bound, `tcp` listens. Everything must outlive it.
  DnsServer(Loop& loop, UniqueFd udp, UniqueFd tcp, NameAnswers& answers,
            std::chrono::milliseconds idle = kIdle);
  ~DnsServer();

 private:
  class Connection;

  void take_datagrams();
  bool take_datagram();
  void take_connections();
  void pause_accepting();

  Loop& loop_;
  UniqueFd udp_, tcp_;
  NameAnswers& answers_;
  const std::chrono::milliseconds idle_;
  std::list<std::unique_ptr<Connection>> connections_;  // the longest idle one first
  Loop::Handle udp_watch_, tcp_watch_, retry_;
};

}  // namespace firestop::egress
