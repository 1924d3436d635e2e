// What a guest is told of a name. Everything is decided here: no question leaves the host on a guest's word,
// so no name can carry data out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/dns.h"
#include "egress/address_book.h"
#include "egress/crossing.h"
#include "egress/guard.h"

namespace firestop::egress {

// Allowed names: an A record from the book, and at once "no such record" for everything else (AAAA and HTTPS
// too: IPv6 and encrypted hellos would lead nowhere). All others: no such name, since "refused" would send
// resolvers to the next server. The book's addresses have their names back by PTR.
class NameAnswers {
 public:
  enum class Transport { kUdp, kTcp };
  // Seconds for which an answer may be remembered. The policy never changes, yet a record that shows when a
  // name was used is worth a question a minute.
  static constexpr uint32_t kTtl = 60;

  // All must outlive it.
  NameAnswers(Guard& guard, AddressBook& book, Recorder record)
      : guard_(guard), book_(book), record_(std::move(record)) {}

  // The message that answers `message`; empty when none must. Records the question.
  std::string answer(std::string_view message, Transport transport, uint16_t source_port);

 private:
  codec::DnsAnswer decide(const codec::DnsQuery& query, Crossing& crossing);
  codec::DnsAnswer of_host(const codec::DnsQuery& query, Crossing& crossing);

  Guard& guard_;
  AddressBook& book_;
  Recorder record_;
};

}  // namespace firestop::egress
