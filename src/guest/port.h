// The channel's end in the guest: the virtio-serial port "firestop.0" with a mux on it.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "channel/messages.h"
#include "channel/mux.h"
#include "guest/events.h"

namespace firestop::guest {

// The virtio-serial port of this name, once it exists and somebody is at its other end. It does not block.
Result<UniqueFd> open_port(const char* name);

class Port {
 public:
  explicit Port(channel::Mux::Callbacks callbacks) : mux_(std::move(callbacks)) {}

  // Waits until the host's port exists and somebody is at its other end.
  Result<void> open();
  // From now on what comes is given to the mux. A broken channel is in broken().
  void attach(Events& events);

  channel::Mux& mux() { return mux_; }
  // Of this only what fits a frame is sent: a message that does not is our mistake, and breaks the channel.
  void say(const channel::FromGuest& message);
  // Writes what it can without waiting, and asks for an event if something stays.
  void flush();
  // Writes all that is pending, waiting at most about a second; for the last words.
  void flush_finally();
  // Producers stop here: the host takes bytes more slowly than streams make them.
  bool congested() const { return mux_.pending().size() > kCongestion; }
  // Empty, or why the channel cannot be used any more.
  const std::string& broken() const { return broken_; }

 private:
  static constexpr size_t kCongestion = 512u << 10;  // bytes; bounds PID 1's memory together with kMaxPayload
  void read_some();

  UniqueFd fd_;
  channel::Mux mux_;
  Events* events_ = nullptr;
  std::string broken_;
};

}  // namespace firestop::guest
