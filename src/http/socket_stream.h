// A connected stream socket as bytes.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/loop.h"
#include "http/byte_stream.h"

namespace firestop::http {

class SocketStream final : public ByteStream {
 public:
  // `already_read`: what was taken from the socket before; it is read first.
  SocketStream(Loop& loop, UniqueFd socket, std::string already_read = {});
  ~SocketStream() override;

  Io read(char* buffer, size_t size) override;
  Io write(std::string_view bytes) override;
  void shutdown_write() override;
  void break_on_close() override;
  void want(std::function<void()> readable, std::function<void()> writable) override;
  void pause_reading(bool paused) override;
  void wait_writable(bool wait) override;

 private:
  void update();

  Loop& loop_;
  UniqueFd socket_;
  std::string already_read_;
  std::function<void()> readable_, writable_;
  bool reading_ = false, writing_ = false;
  bool drained_ = false;  // nothing is there until the loop says so
  bool ended_ = false;    // the other side's half: a level-triggered hangup for ever
  int events_ = 0;
  Loop::Handle watch_;
  Loop::Handle soon_;  // for already_read_
};

}  // namespace firestop::http
