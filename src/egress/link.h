// What the egress process and its sandbox say to each other, over one socket, in frames (codec/frame.h):
//
//   sandbox: data on stream 1, then its end   the configuration, JSON; once
//   process: control {"type":"ready", ...}    it is locked down and answers; or
//            control {"type":"failed", ...}   it cannot, and why; the last
//            control {"type":"crossing", ...} any number of times
//            control {"type":"lost", "count"} crossings that could not be told, because nobody took them
//   sandbox: closes its half                  the process ends its connections, tells what is left, and ends
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "codec/json.h"
#include "egress/crossing.h"

namespace firestop::egress {

inline constexpr uint16_t kConfigStream = 1;
inline constexpr size_t kMostConfig = 4u << 20;  // bytes
inline constexpr size_t kMostUnsent = 1u << 20;  // bytes of crossings that wait for a slow reader
// The process's descriptors.
inline constexpr int kLinkFd = 3, kTcpFd = 4, kDnsTcpFd = 5, kDnsUdpFd = 6, kSinkFd = 7, kSourcesFd = 8;

// The process's side. Never blocks; what does not fit is counted, and told as soon as something fits.
class LinkWriter {
 public:
  explicit LinkWriter(int socket) : socket_(socket) {}  // not owned; non-blocking
  void crossing(const Crossing& crossing);
  // A message of another type; not lost.
  void say(const codec::JsonObject& message);
  // Whether all was taken.
  bool empty() const { return buffer_.size() == sent_ && lost_ == 0; }
  bool broken() const { return broken_; }
  uint64_t lost() const { return all_lost_; }
  // Called by whoever watches the socket, when it can take more.
  void flush();
  // Set by whoever watches the socket: whether to be called.
  std::function<void(bool)> on_waiting;

 private:
  void append(const codec::JsonObject& message);

  int socket_;
  std::string buffer_, told_;
  size_t sent_ = 0;
  uint64_t lost_ = 0, all_lost_ = 0;
  bool broken_ = false;
};

}  // namespace firestop::egress
