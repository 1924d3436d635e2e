#include "http/socket_stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace firestop::http {

SocketStream::SocketStream(Loop& loop, UniqueFd socket, std::string already_read)
    : loop_(loop), socket_(std::move(socket)), already_read_(std::move(already_read)) {
  watch_ = loop_.watch(socket_.get(), 0, [this](int events) {
    const bool readable = (events & (Loop::kReadable | Loop::kHangup)) != 0;
    if (readable) drained_ = false;
    if ((events & Loop::kWritable) && writing_) writable_();
    if (readable && reading_) readable_();
  });
}

SocketStream::~SocketStream() {
  watch_.reset();  // before the descriptor
}

ByteStream::Io SocketStream::read(char* buffer, size_t size) {
  if (!already_read_.empty()) {
    const size_t taken = already_read_.copy(buffer, size);
    already_read_.erase(0, taken);
    if (already_read_.empty()) already_read_.shrink_to_fit();
    update();
    return {State::kOk, taken};
  }
  if (drained_) return {State::kWouldBlock, 0};
  const ssize_t got = ::recv(socket_.get(), buffer, size, 0);
  if (got > 0) {
    drained_ = static_cast<size_t>(got) < size;
    return {State::kOk, static_cast<size_t>(got)};
  }
  if (got == 0) {
    ended_ = true;
    update();
    return {State::kEnd, 0};
  }
  return {errno == EAGAIN || errno == EINTR ? State::kWouldBlock : State::kFailed, 0};
}

ByteStream::Io SocketStream::write(std::string_view bytes) {
  const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return {State::kOk, static_cast<size_t>(sent)};
  return {errno == EAGAIN || errno == EINTR ? State::kWouldBlock : State::kFailed, 0};
}

void SocketStream::shutdown_write() {
  ::shutdown(socket_.get(), SHUT_WR);
}

void SocketStream::break_on_close() {
  const linger now{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void SocketStream::want(std::function<void()> readable, std::function<void()> writable) {
  readable_ = std::move(readable);
  writable_ = std::move(writable);
  reading_ = true;
  update();
}

void SocketStream::pause_reading(bool paused) {
  reading_ = !paused;
  update();
}

void SocketStream::wait_writable(bool wait) {
  writing_ = wait;
  update();
}

void SocketStream::update() {
  const bool from_socket = reading_ && !ended_ && already_read_.empty();
  const int events = (from_socket ? Loop::kReadable : Loop::kNoHangup) | (writing_ ? Loop::kWritable : 0);
  if (events != events_) {
    events_ = events;
    watch_->set_events(events);
  }
  if (!reading_ || already_read_.empty()) {
    soon_.reset();
  } else if (!soon_) {
    soon_ = loop_.once(std::chrono::milliseconds(0), [this] {
      soon_.reset();
      readable_();
      update();
    });
  }
}

}  // namespace firestop::http
