// Connects to one of several addresses: the next is tried as soon as one fails, or beside it when it takes
// long (RFC 8305). The first that answers is taken.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/loop.h"
#include "codec/address.h"

namespace firestop::egress {

class ConnectRace {
 public:
  using Won = std::function<void(UniqueFd, const codec::Address&)>;  // non-blocking, TCP_NODELAY
  using Lost = std::function<void(const std::string& why)>;          // of the last that failed; all have

  // `addresses` has at least one. Exactly one of the two is called, once, not before the constructor has
  // returned; either may destroy the race.
  ConnectRace(Loop& loop, std::vector<codec::Address> addresses, uint16_t port,
              std::chrono::milliseconds stagger, Won won, Lost lost);

 private:
  struct Try {
    codec::Address address;
    UniqueFd socket;
    Loop::Handle watch;  // before the socket it goes
  };
  void try_next();
  bool start(const codec::Address& address);
  void settled(std::list<Try>::iterator one);

  Loop& loop_;
  const std::vector<codec::Address> addresses_;
  const uint16_t port_;
  const std::chrono::milliseconds stagger_;
  Won won_;
  Lost lost_;
  size_t next_ = 0;
  std::string why_;
  std::list<Try> tries_;
  Loop::Handle timer_;
};

// IPv6 and IPv4 by turns, the first one's family first; at most `most`.
std::vector<codec::Address> by_turns(const std::vector<codec::Address>& addresses, size_t most);

}  // namespace firestop::egress
