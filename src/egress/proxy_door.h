// The listener of a proxy that its clients know of (`firestop proxy`): takes connections, counts them, hands
// them on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/fd.h"
#include "base/loop.h"
#include "egress/carrier.h"
#include "egress/crossing.h"

namespace firestop::egress {

class ProxyDoor {
 public:
  static constexpr int kMostInOneTurn = 64;  // connections, before others get their turn
  static constexpr uint32_t kConnectionsUnlessSaid = 1024;

  // `listener` is non-blocking and listens. The carrier outlives the door, not the connections the carrier.
  ProxyDoor(Loop& loop, UniqueFd listener, uint32_t connections, Carrier& carrier, Recorder record);
  ~ProxyDoor();
  ProxyDoor(const ProxyDoor&) = delete;
  ProxyDoor& operator=(const ProxyDoor&) = delete;

  uint32_t open_connections() const { return *open_; }

 private:
  void accept_some();
  bool accept_one();
  void out_of_descriptors();
  void tell(const char* detail, uint16_t source_port);

  Loop& loop_;
  UniqueFd listener_, reserve_;
  const uint32_t connections_;
  Carrier& carrier_;
  Recorder record_;
  std::shared_ptr<uint32_t> open_ = std::make_shared<uint32_t>(0);
  Loop::Handle watch_, retry_;
};

}  // namespace firestop::egress
