// The detector and the scrubber within a WebSocket (RFC 6455), whose payload is masked on its way out and cut
// into frames both ways. Messages must not be compressed: the guard does not let permessage-deflate through.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/filter.h"

namespace firestop::credentials {

// Tells heads of frames from their payload; what it is fed may be cut anywhere.
class FrameReader {
 public:
  // `payload` with its mask undone.
  void feed(std::string_view bytes, const std::function<void(std::string_view head)>& on_head,
            const std::function<void(std::string_view payload)>& on_payload);

 private:
  bool read_head(char c);

  std::string head_;   // being read
  uint64_t left_ = 0;  // bytes of payload
  unsigned char mask_[4]{};
  bool masked_ = false, in_payload_ = false;
  size_t mask_at_ = 0;
  std::string unmasked_;
};

// Messages are one text, whatever frames they are cut into, and what control frames between these say
// another.
struct WebsocketFilters {
  std::unique_ptr<http::Filter> message, control;
};

// Passes frames as they came, and shows their payload to detectors, whose denial ends them.
std::unique_ptr<http::Filter> websocket_detector(WebsocketFilters detectors);
// Passes heads as they came, and the payload through scrubbers, which must keep the length. More frames than
// a bound that come while payload is held back are `bad`.
std::unique_ptr<http::Filter> websocket_scrubber(WebsocketFilters scrubbers,
                                                 std::function<http::Denial(const std::string& why)> bad);

}  // namespace firestop::credentials
