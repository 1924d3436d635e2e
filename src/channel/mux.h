// Many streams over one byte stream, with credit: a sender sends at most what the receiver granted, so a slow
// reader stops its own stream and no other, and memory is bounded by the windows. A pure state machine: bytes
// in, bytes out, no descriptors, no time. Used by both sides.
//
// A stream goes one way, its number is used once. Credit may overtake nothing, so the sender must know the
// stream before the receiver opens it: call open_send() before the control message that makes the other side
// call open_receive(), and open_receive() after the message that makes it call open_send().
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

inline constexpr uint32_t kWindow = 1u << 20;       // bytes granted to the other side of a stream at opening
inline constexpr size_t kMaxControlBacklog = 1024;  // control messages in one receive()

class Mux {
 public:
  // Called from within receive(). They may call every method but receive(), and must not destroy the Mux.
  // Views are good for the call. An empty function is not called.
  struct Callbacks {
    std::function<void(std::string_view json)> on_control;
    std::function<void(uint16_t stream, std::string_view data)> on_data;
    std::function<void(uint16_t stream)> on_end;
    std::function<void(uint16_t stream)>
        on_writable;  // credit came for a stream that had none; also the first
  };
  explicit Mux(Callbacks callbacks);
  Mux(const Mux&) = delete;
  Mux& operator=(const Mux&) = delete;

  // A stream that this side receives on; data on others is an error. Grants kWindow.
  void open_receive(uint16_t stream);
  // A stream that this side sends on; credit for others is an error. Starts without credit.
  void open_send(uint16_t stream);

  // Bytes from the other side, cut anywhere. Errors: "channel.bad_frame", "channel.bad_stream" (a stream that
  // is not open, or has ended), "channel.over_credit" (more data than was granted), "channel.bad_credit"
  // (more than a window, or for data that was not even written), "channel.control_flood". After one the
  // channel must be closed; each further call gives an error.
  Result<void> receive(std::string_view bytes);
  // The receiver of `stream` has taken so many bytes: grants them again, a quarter of the window at a time.
  void consumed(uint16_t stream, size_t bytes);

  // Errors: "channel.too_large" above codec::kMaxPayload, and nothing is sent.
  Result<void> send_control(std::string_view json);
  // Queues as much as credit allows and returns how much that was; on_writable follows if it was not all.
  size_t send(uint16_t stream, std::string_view data);
  size_t credit(uint16_t stream) const;  // 0 if it is not open or has ended
  void send_end(uint16_t stream);

  // Encoded bytes that wait to be written (good until the next call of any other method); take what was
  // written off the front, before the next receive(). At most a window for each sending stream, the frames'
  // headers, and this side's control messages.
  std::string_view pending() const { return std::string_view(out_).substr(out_written_); }
  void written(size_t bytes);

 private:
  struct Receiving {
    uint32_t granted = 0;   // bytes that the other side may still send
    uint32_t consumed = 0;  // taken, not granted again yet
    bool ended = false;
  };
  struct Sending {
    uint32_t credit = 0;
    uint32_t unwritten = 0;  // bytes of it in out_
    bool ended = false;
  };
  struct Queued {      // a data frame in out_
    uint64_t end = 0;  // position after it, counted from the channel's first byte
    uint32_t bytes = 0;
    uint16_t stream = 0;
  };
  Result<void> handle_frames();
  Result<void> handle(const codec::Frame& frame);
  Result<void> handle_data(const codec::Frame& frame);
  Result<void> handle_end(const codec::Frame& frame);
  Result<void> handle_credit(const codec::Frame& frame);

  Callbacks callbacks_;
  codec::FrameDecoder decoder_;
  std::map<uint16_t, Receiving> receiving_;
  std::map<uint16_t, Sending> sending_;
  std::string out_;
  size_t out_written_ = 0;  // bytes at the front of out_ that were written
  uint64_t total_written_ = 0;
  std::deque<Queued> queued_;
  bool broken_ = false;
};

}  // namespace firestop::channel
