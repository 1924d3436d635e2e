// A non-blocking two-way stream of bytes: a socket, or TLS over one. Callbacks come on the loop's thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace firestop::http {

class ByteStream {
 public:
  enum class State { kOk, kWouldBlock, kEnd, kFailed };  // kEnd: the other side closed its half in order
  struct Io {
    State state = State::kOk;
    size_t bytes = 0;
  };

  virtual ~ByteStream() = default;  // not from inside its own callbacks
  virtual Io read(char* buffer, size_t size) = 0;
  // After kWouldBlock the next write must begin with the same bytes.
  virtual Io write(std::string_view bytes) = 0;
  // What was written before still arrives; in TLS an end that the other side can tell from a break.
  virtual void shutdown_write() = 0;
  // The other side is to see a break, not an end, when this is destroyed.
  virtual void break_on_close() {}
  // Level-triggered: called again while it is so. Reading is wanted from here on until it is paused.
  virtual void want(std::function<void()> readable, std::function<void()> writable) = 0;
  virtual void pause_reading(bool paused) = 0;
  virtual void wait_writable(bool wait) = 0;
};

}  // namespace firestop::http
