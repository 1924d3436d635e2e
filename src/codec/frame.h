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
  kData = 2,     // raw bytes of a stream; never empty
  kEnd = 3,      // the sender will send no more data on this stream; empty
  kCredit = 4,   // u32 little endian: so many more bytes may be sent on this stream
};

struct Frame {
  FrameType type{};
  uint16_t stream = 0;
  std::string payload;
};

// Appends the encoded frame. The payload must fit.
void append_frame(std::string& out, FrameType type, uint16_t stream, std::string_view payload);

// Incremental: feed() bytes as they come, next() until it has nothing. After an error it stays broken.
// Holds at most one frame plus what was fed.
class FrameDecoder {
 public:
  void feed(std::string_view bytes);
  // A frame, nothing yet, or "frame.bad" (length, type, non-zero byte, empty data, stream of a control frame).
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  size_t read_ = 0;
  bool broken_ = false;
};

}  // namespace firestop::codec
