// The TCP listener and the sink of a guest's network: every connection that it tries comes in here, is
// counted, gets the name that stands behind its address, and is handed on; every other datagram is swallowed
// and told.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/loop.h"
#include "egress/crossing.h"
#include "http/message.h"

namespace firestop::egress {

// A connection of the guest's that nobody has answered yet.
struct Arrived {
  UniqueFd socket;      // non-blocking
  http::Authority to;   // the name behind the address, else the address; and the port
  std::string address;  // as the guest wrote it, dotted
  bool named = false;   // whether `to` is a name
  uint16_t source_port = 0;
  // Kept until the connection has ended: it counts until then.
  std::shared_ptr<void> place;
};

// Resets the connection instead of closing it.
void reset_connection(UniqueFd socket);

class Doors {
 public:
  static constexpr int kMostInOneTurn = 64;  // connections or datagrams, before others get their turn
  static constexpr uint32_t kMostConnections = 4096;  // whatever the manifest says
  static constexpr uint32_t kConnectionsUnlessSaid = 1024;

  struct Settings {
    uint32_t connections = kConnectionsUnlessSaid;  // at once
    // The name that a made-up address was given for, or null: as AddressBook has it.
    std::function<const std::string*(const std::string& address)> name_of;
    std::function<void(Arrived)> carry;
    Recorder record;
  };
  // Everything in `settings` must be callable until the end. Sockets as of Seam.
  Doors(Loop& loop, UniqueFd tcp, UniqueFd sink, Settings settings);
  ~Doors();
  uint32_t open_connections() const { return *open_; }

 private:
  void accept_some();
  bool accept_one();
  void out_of_descriptors();
  void sink_some();
  bool sink_one();
  void tell_dropped(uint32_t all);

  Loop& loop_;
  UniqueFd tcp_, sink_, reserve_;
  Settings settings_;
  uint32_t dropped_ = 0;
  std::shared_ptr<uint32_t> open_ = std::make_shared<uint32_t>(0);
  Loop::Handle tcp_watch_, sink_watch_, retry_;
};

}  // namespace firestop::egress
