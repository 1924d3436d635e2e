// Git's pkt-lines (gitprotocol-common(5), gitprotocol-v2(5)): four hexadecimal digits of length that count
// themselves, then the payload. 0000, 0001 and 0002 are marks without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::codec {

inline constexpr size_t kPktHeader = 4;
inline constexpr size_t kMostPktPayload = 65516;

struct PktLine {
  enum class Kind : uint8_t { kData, kFlush, kDelimiter, kResponseEnd };
  Kind kind{};
  std::string_view payload;  // points into the reader: good until its next feed()

  // The payload without one LF at its end: both forms mean the same.
  std::string_view text() const;
};

// Incremental: feed() bytes as they come, next() until it has nothing. After an error it stays broken. Holds
// at most one line plus what was fed since; the length is judged before the payload is waited for.
class PktLineReader {
 public:
  void feed(std::string_view bytes);
  // A line, nothing yet, or "pkt_line.bad": four bytes that are no hexadecimal digits, 0003, or a length
  // beyond kMostPktPayload.
  Result<std::optional<PktLine>> next();
  // What was fed and not given out: the beginning of a line, or what follows the last one.
  std::string_view rest() const;

 private:
  std::string buffer_;
  size_t read_ = 0;  // bytes at the front of buffer_ that were given out
  bool broken_ = false;
};

// The payload must fit into kMostPktPayload (checked: aborts).
void append_pkt_line(std::string& out, std::string_view payload);
void append_pkt_mark(std::string& out, PktLine::Kind mark);  // any but kData

}  // namespace firestop::codec
