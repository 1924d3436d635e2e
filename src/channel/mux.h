// Many streams over one byte stream, with credit: a sender sends at most what the receiver granted, so a slow
// reader stops its own stream and no other, and memory is bounded by the windows. A pure state machine: bytes
// in, bytes out, no descriptors, no time. Used by both sides.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/frame.h"

namespace firestop::channel {

inline constexpr uint32_t kWindow = 1u << 20;  // bytes granted to the other side of a stream at opening

class Mux {
 public:
  struct Callbacks {
    std::function<void(std::string_view json)> on_control;
    std::function<void(uint16_t stream, std::string_view data)> on_data;
    std::function<void(uint16_t stream)> on_end;
    std::function<void(uint16_t stream)> on_writable;  // credit came for a stream that had run dry
  };
  explicit Mux(Callbacks callbacks);

  // A stream that this side receives on; data on others is an error. Grants kWindow.
  void open_receive(uint16_t stream);
  // A stream that this side sends on; credit for others is an error. Starts without credit.
  void open_send(uint16_t stream);

  // Bytes from the other side. Errors: "channel.bad_frame", "channel.bad_stream", "channel.over_credit",
  // "channel.control_flood" (more than kMaxControlBacklog unread). After one the channel must be closed.
  Result<void> receive(std::string_view bytes);
  // The receiver of `stream` has taken so many bytes: grants them again.
  void consumed(uint16_t stream, size_t bytes);

  void send_control(std::string_view json);
  // Queues as much as credit allows and returns how much that was.
  size_t send(uint16_t stream, std::string_view data);
  size_t credit(uint16_t stream) const;
  void send_end(uint16_t stream);

  // Encoded bytes that wait to be written; take what was written off the front.
  const std::string& pending() const { return out_; }
  void written(size_t bytes);

 private:
  struct Receiving {
    uint32_t granted = 0;   // bytes that the other side may still send
    uint32_t consumed = 0;  // taken, not granted again yet
    bool ended = false;
  };
  struct Sending {
    uint64_t credit = 0;
    bool dry = false;
    bool ended = false;
  };
  Callbacks callbacks_;
  codec::FrameDecoder decoder_;
  std::map<uint16_t, Receiving> receiving_;
  std::map<uint16_t, Sending> sending_;
  std::string out_;
};

}  // namespace firestop::channel
