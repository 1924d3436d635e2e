// Frames of the host-guest channel: an 8-byte header (payload length, u32; type, u8; zero, u8; stream, u16;
// little endian), then the payload. Both sides take the other's bytes as hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::codec {

inline constexpr size_t kFrameHeader = 8;
inline constexpr size_t kMaxPayload = 64u << 10;

enum class FrameType : uint8_t {
  kControl = 1,  // stream 0; payload is one JSON object
  kData = 2,     // raw bytes of a stream other than 0; never empty
  kEnd = 3,      // the sender will send no more data on this stream; empty
  kCredit = 4,   // u32 little endian, not 0: so many more bytes may be sent on this stream
};

struct Frame {
  FrameType type{};
  uint16_t stream = 0;
  std::string_view payload;  // points into the decoder: good until its next feed() or next()

  uint32_t credit() const;  // of a kCredit frame
};

// Appends the encoded frame. The payload must fit into kMaxPayload (checked: aborts).
void append_frame(std::string& out, FrameType type, uint16_t stream, std::string_view payload);
void append_credit(std::string& out, uint16_t stream, uint32_t bytes);

// Incremental: feed() bytes as they come, next() until it has nothing. After an error it stays broken.
// Holds at most one frame plus what was fed since.
class FrameDecoder {
 public:
  void feed(std::string_view bytes);
  // A frame, nothing yet, or "frame.bad": length, type, non-zero byte, empty data or control, an end with a
  // payload, a credit of 0 or of another size than 4, stream 0 for anything but control or another for it.
  // The header is judged as soon as it is there, before the payload is waited for.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  size_t read_ = 0;  // bytes at the front of buffer_ that were given out
  bool broken_ = false;
};

}  // namespace firestop::codec
