#include "channel/mux.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace firestop::channel {
namespace {

using codec::FrameType;

// Grants go out when so much was consumed: seldom enough to cost nothing, often enough that a sender with a
// fast reader never runs dry.
constexpr uint32_t kGrant = kWindow / 4;
// Written bytes stay in front of the output until they are worth moving the rest.
constexpr size_t kCompactAbove = 256u << 10;

Unexpected violation(std::string_view code, std::string_view what, uint16_t stream) {
  return fail(code, "the other side broke the channel's protocol: " + std::string(what) + " (stream " +
                        std::to_string(stream) + ")");
}

}  // namespace

Mux::Mux(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

void Mux::open_receive(uint16_t stream) {
  if (!receiving_.try_emplace(stream, Receiving{kWindow, 0, false}).second) return;
  codec::append_credit(out_, stream, kWindow);
}

void Mux::open_send(uint16_t stream) {
  sending_.try_emplace(stream);
}

Result<void> Mux::receive(std::string_view bytes) {
  if (broken_) return fail("channel.bad_frame", "the channel is broken");
  decoder_.feed(bytes);
  Result<void> handled = handle_frames();
  broken_ = !handled;
  return handled;
}

Result<void> Mux::handle_frames() {
  size_t controls = 0;
  while (true) {
    auto next = decoder_.next();
    if (!next)
      return fail("channel.bad_frame",
                  "the other side broke the channel's protocol: " + next.error().message);
    const std::optional<codec::Frame>& frame = *next;
    if (!frame) return {};
    if (frame->type == FrameType::kControl && ++controls > kMaxControlBacklog)
      return violation("channel.control_flood", "too many control messages at once", 0);
    TRY(handle(*frame));
  }
}

Result<void> Mux::handle(const codec::Frame& frame) {
  switch (frame.type) {
    case FrameType::kControl:
      if (callbacks_.on_control) callbacks_.on_control(frame.payload);
      return {};
    case FrameType::kData:
      return handle_data(frame);
    case FrameType::kEnd:
      return handle_end(frame);
    case FrameType::kCredit:
      return handle_credit(frame);
  }
  return {};
}

Result<void> Mux::handle_data(const codec::Frame& frame) {
  auto it = receiving_.find(frame.stream);
  if (it == receiving_.end())
    return violation("channel.bad_stream", "data for a stream that is not open", frame.stream);
  if (it->second.ended) return violation("channel.bad_stream", "data after the end", frame.stream);
  if (frame.payload.size() > it->second.granted)
    return violation("channel.over_credit", "more data than was granted", frame.stream);
  it->second.granted -= static_cast<uint32_t>(frame.payload.size());
  if (callbacks_.on_data) callbacks_.on_data(frame.stream, frame.payload);
  return {};
}

Result<void> Mux::handle_end(const codec::Frame& frame) {
  auto it = receiving_.find(frame.stream);
  if (it == receiving_.end())
    return violation("channel.bad_stream", "the end of a stream that is not open", frame.stream);
  if (it->second.ended) return violation("channel.bad_stream", "a second end", frame.stream);
  it->second.ended = true;
  if (callbacks_.on_end) callbacks_.on_end(frame.stream);
  return {};
}

Result<void> Mux::handle_credit(const codec::Frame& frame) {
  auto it = sending_.find(frame.stream);
  if (it == sending_.end())
    return violation("channel.bad_stream", "credit for a stream that is not open", frame.stream);
  Sending& sending = it->second;
  // No receiver grants more than its window, nor again what it has not got yet: else its credit would be our
  // memory.
  if (frame.credit() > kWindow - sending.credit - sending.unwritten)
    return violation("channel.bad_credit", "more credit than a window", frame.stream);
  bool was_dry = sending.credit == 0;
  sending.credit += frame.credit();
  if (was_dry && !sending.ended && callbacks_.on_writable) callbacks_.on_writable(frame.stream);
  return {};
}

void Mux::consumed(uint16_t stream, size_t bytes) {
  auto it = receiving_.find(stream);
  if (it == receiving_.end()) return;
  Receiving& r = it->second;
  r.consumed += static_cast<uint32_t>(std::min<size_t>(bytes, kWindow - r.granted - r.consumed));
  if (r.ended || r.consumed < kGrant) return;
  codec::append_credit(out_, stream, r.consumed);
  r.granted += std::exchange(r.consumed, 0);
}

Result<void> Mux::send_control(std::string_view json) {
  if (json.empty() || json.size() > codec::kMaxPayload)
    return fail("channel.too_large", "a control message of " + std::to_string(json.size()) + " bytes");
  codec::append_frame(out_, FrameType::kControl, 0, json);
  return {};
}

size_t Mux::send(uint16_t stream, std::string_view data) {
  data = data.substr(0, credit(stream));
  if (data.empty()) return 0;
  Sending& sending = sending_.find(stream)->second;
  for (std::string_view rest = data; !rest.empty();) {
    std::string_view piece = rest.substr(0, codec::kMaxPayload);
    const auto bytes = static_cast<uint32_t>(piece.size());
    codec::append_frame(out_, FrameType::kData, stream, piece);
    queued_.push_back({total_written_ + out_.size() - out_written_, bytes, stream});
    sending.credit -= bytes;
    sending.unwritten += bytes;
    rest.remove_prefix(piece.size());
  }
  return data.size();
}

size_t Mux::credit(uint16_t stream) const {
  auto it = sending_.find(stream);
  return it == sending_.end() || it->second.ended ? 0 : it->second.credit;
}

void Mux::send_end(uint16_t stream) {
  auto it = sending_.find(stream);
  if (it == sending_.end() || std::exchange(it->second.ended, true)) return;
  codec::append_frame(out_, FrameType::kEnd, stream, {});
}

void Mux::written(size_t bytes) {
  bytes = std::min(bytes, out_.size() - out_written_);
  out_written_ += bytes;
  total_written_ += bytes;
  for (; !queued_.empty() && queued_.front().end <= total_written_; queued_.pop_front())
    sending_.find(queued_.front().stream)->second.unwritten -= queued_.front().bytes;
  if (out_written_ == out_.size()) {
    out_.clear();
    out_written_ = 0;
  } else if (out_written_ > kCompactAbove && out_written_ > out_.size() / 2) {
    // At least as much was written as is moved: constant work a byte.
    out_.erase(0, out_written_);
    out_written_ = 0;
  }
}

}  // namespace firestop::channel
