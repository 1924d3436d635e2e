#include "codec/frame.h"

#include <cstdlib>

namespace firestop::codec {
namespace {

uint32_t read_le(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

void append_le(std::string& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// What is wrong with a header, or nullptr.
const char* fault(uint32_t length, uint8_t type, uint8_t zero, uint16_t stream) {
  if (length > kMaxPayload) return "the payload is too long";
  if (zero != 0) return "the reserved byte is not zero";
  switch (FrameType{type}) {
    case FrameType::kControl:
      if (stream != 0) return "a control frame on a stream";
      return length == 0 ? "an empty control frame" : nullptr;
    case FrameType::kData:
      if (stream == 0) return "data on stream 0";
      return length == 0 ? "an empty data frame" : nullptr;
    case FrameType::kEnd:
      if (stream == 0) return "an end of stream 0";
      return length != 0 ? "an end with a payload" : nullptr;
    case FrameType::kCredit:
      if (stream == 0) return "credit for stream 0";
      return length != 4 ? "a credit that is not 4 bytes" : nullptr;
  }
  return "unknown type";
}

}  // namespace

uint32_t Frame::credit() const {
  return read_le(payload.substr(0, 4));
}

void append_frame(std::string& out, FrameType type, uint16_t stream, std::string_view payload) {
  if (payload.size() > kMaxPayload) std::abort();
  append_le(out, static_cast<uint32_t>(payload.size()), 4);
  append_le(out, static_cast<uint8_t>(type), 2);  // and the zero byte
  append_le(out, stream, 2);
  out.append(payload);
}

void append_credit(std::string& out, uint16_t stream, uint32_t bytes) {
  std::string payload;
  append_le(payload, bytes, 4);
  append_frame(out, FrameType::kCredit, stream, payload);
}

void FrameDecoder::feed(std::string_view bytes) {
  if (broken_) return;
  // What remains is less than a frame if next() was called until it had nothing: one short move a feed.
  if (read_ > 0) {
    buffer_.erase(0, read_);
    read_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<Frame>> FrameDecoder::next() {
  if (broken_) return fail("frame.bad", "the frame before was malformed");
  std::string_view rest = std::string_view(buffer_).substr(read_);
  if (rest.size() < kFrameHeader) return std::nullopt;

  uint32_t length = read_le(rest.substr(0, 4));
  auto type = static_cast<uint8_t>(rest[4]);
  auto stream = static_cast<uint16_t>(read_le(rest.substr(6, 2)));
  const char* wrong = fault(length, type, static_cast<uint8_t>(rest[5]), stream);
  if (!wrong && rest.size() < kFrameHeader + length) return std::nullopt;

  Frame frame{FrameType{type}, stream, rest.substr(kFrameHeader, length)};
  if (!wrong && frame.type == FrameType::kCredit && frame.credit() == 0) wrong = "a credit of nothing";
  if (wrong) {
    broken_ = true;
    buffer_.clear();
    read_ = 0;
    return fail("frame.bad", std::string("malformed frame: ") + wrong + " (length " + std::to_string(length) +
                                 ", type " + std::to_string(type) + ", stream " + std::to_string(stream) +
                                 ")");
  }
  read_ += kFrameHeader + length;
  return frame;
}

}  // namespace firestop::codec
