#include "credentials/source_wire.h"

#include <algorithm>
#include <cstring>

namespace firestop::credentials {
namespace {

size_t write(Secret& packet, char kind, std::chrono::milliseconds valid, std::string_view bytes) {
  char* out = packet.writable();
  out[0] = kind;
  const auto number = static_cast<uint64_t>(std::max<int64_t>(valid.count(), 0));
  for (size_t at = 0; at < 8; ++at) out[1 + at] = static_cast<char>(number >> (8 * at) & 0xFF);
  const size_t size = std::min(bytes.size(), packet.size() - kAnswerHead);
  std::memcpy(out + kAnswerHead, bytes.data(), size);
  return kAnswerHead + size;
}

}  // namespace

size_t write_answer(Secret& packet, std::string_view value, std::chrono::milliseconds valid) {
  return write(packet, 'v', valid, value);
}

size_t write_refusal(Secret& packet, std::string_view why) {
  return write(packet, 'n', {}, why.substr(0, 1024));
}

std::optional<SourceAnswer> read_answer(std::string_view packet) {
  if (packet.size() < kAnswerHead || (packet[0] != 'v' && packet[0] != 'n')) return {};
  uint64_t number = 0;
  for (size_t at = 8; at > 0; --at) number = number << 8 | static_cast<unsigned char>(packet[at]);
  constexpr uint64_t kMost = 1000ull * 3600 * 24 * 366;
  SourceAnswer out{packet[0] == 'v', std::chrono::milliseconds(std::min(number, kMost)),
                   packet.substr(kAnswerHead)};
  if (out.has_value && (out.bytes.size() < kLeastSecret || out.bytes.size() > kMostSecret)) return {};
  return out;
}

}  // namespace firestop::credentials
