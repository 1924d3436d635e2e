// Between a stream of the channel and a descriptor, with back-pressure both ways: a slow reader here takes
// its credit from the guest, a slow guest stops our reading. Each relay holds at most one window of bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/loop.h"
#include "channel/mux.h"

namespace firestop::sandbox {

// Guest to descriptor.
class Outflow {
 public:
  // `on_queued`: credit waits in the mux to be sent. `on_done` runs once, when the stream ended and all of it
  // was written, or the reader went away.
  Outflow(Loop& loop, channel::Mux& mux, uint16_t stream, UniqueFd fd, std::function<void()> on_queued,
          std::function<void()> on_done);
  void data(std::string_view bytes);
  void end();
  bool done() const { return done_; }
  bool reader_gone() const { return reader_gone_; }

 private:
  void write_some();
  void finish();

  Loop& loop_;
  channel::Mux& mux_;
  const uint16_t stream_;
  UniqueFd fd_;
  std::function<void()> on_queued_, on_done_;
  std::string buffer_;
  size_t written_ = 0;  // of buffer_
  bool ended_ = false, done_ = false, reader_gone_ = false;
  Loop::Handle watch_;
};

// Descriptor to guest.
class Inflow {
 public:
  Inflow(Loop& loop, channel::Mux& mux, uint16_t stream, UniqueFd fd, std::function<void()> on_queued);
  void writable();  // credit came
  void stop();

 private:
  void read_some();

  channel::Mux& mux_;
  const uint16_t stream_;
  UniqueFd fd_;
  std::function<void()> on_queued_;  // bytes wait in the mux
  Loop::Handle watch_;
};

}  // namespace firestop::sandbox
