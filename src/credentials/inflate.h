// Undoes a content coding (RFC 9110, section 8.4.1) while it goes by: gzip, deflate (zlib or raw), br.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace firestop::credentials {

class Inflate {
 public:
  // Out of one feed() at most so much comes; more is a bomb. Servers' text grows some twentyfold.
  static constexpr size_t kMostOfOneFeed = 16u << 20;
  using Sink = std::function<void(std::string_view bytes)>;  // in pieces of at most 16 KiB

  virtual ~Inflate() = default;
  // "inflate.bad": it is not of this coding, there is something behind its end, or it is a bomb.
  virtual Result<void> feed(std::string_view bytes, const Sink& sink) = 0;
  virtual bool ended() const = 0;  // the coding's own end was seen
  // Bytes of its window, which whoever compressed the body chose: of br up to 16 MiB.
  virtual size_t memory() const = 0;

  static bool knows(std::string_view coding);
  // Of "gzip", "x-gzip", "deflate", "br", in any case; null for others.
  static std::unique_ptr<Inflate> make(std::string_view coding);
};

}  // namespace firestop::credentials
