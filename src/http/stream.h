// One exchange as its carrier sees it, alike for HTTP/1.1 and HTTP/2, towards the guest (server) and towards
// the origin (client). All on the loop's thread. Data that is sent is buffered; who sends stops while
// buffered() is over kHighWater and goes on at on_writable(). Data that is received is given back with
// consumed(), which opens the other side's window or resumes reading: so memory of one exchange is bounded by
// the two marks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/message.h"

namespace firestop::http {

inline constexpr size_t kHighWater = 256u << 10;  // bytes
inline constexpr size_t kLowWater = 64u << 10;

// Who gets what arrives. May destroy the stream from inside any call but on_data.
class StreamReceiver {
 public:
  virtual ~StreamReceiver() = default;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): those that override it keep the head.
  virtual void on_response(ResponseHead) {}          // of a client stream; also 1xx, then once the final one
  virtual void on_data(std::string_view bytes) = 0;  // after 101 or a WebSocket CONNECT: bytes of the tunnel
  virtual void on_end(Headers trailers) = 0;
  virtual void on_abort(const std::string& why) = 0;  // reset, broken framing, connection gone; the last call
  virtual void on_writable() = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;                              // aborts what has not ended
  virtual void set_receiver(StreamReceiver* receiver) = 0;  // never null
  virtual void send_data(std::string_view bytes) = 0;
  virtual void send_end(const Headers& trailers) = 0;
  virtual size_t buffered() const = 0;
  virtual void consumed(size_t bytes) = 0;
  // Ends it as the protocol can say it: RST_STREAM, or the connection is closed.
  virtual void abort() = 0;
};

class ServerStream : public Stream {  // towards the guest
 public:
  // 1xx any number of times, then once the final one; 101 turns both ways into a tunnel (HTTP/2: 200 to an
  // extended CONNECT, which the carrier translates).
  virtual void send_response(const ResponseHead& head) = 0;
};

class ClientStream : public Stream {};  // towards the origin; its request head was given when it was opened

// Called by a server connection for each request. The stream is the callee's.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  virtual void on_request(RequestHead head, std::unique_ptr<ServerStream> stream) = 0;
};

}  // namespace firestop::http
