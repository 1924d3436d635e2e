#include "guest/streams.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "codec/frame.h"

namespace firestop::guest {
namespace {

constexpr int kReadsAtOnce = 8;  // then others have their turn
constexpr char kEndOfFile = 4;   // ^D, the default VEOF

}  // namespace

Output::Output(Events& events, Port& port, uint16_t stream, UniqueFd fd, Source source)
    : events_(events), port_(port), stream_(stream), fd_(std::move(fd)), source_(source) {
  events_.watch(fd_.get(), EPOLLIN, [this](uint32_t) { pump(); });
}

Output::~Output() {
  if (fd_.valid()) events_.drop(fd_.get());
}

void Output::resume() {
  if (blocked_ || idle_terminal_) pump();
}

void Output::pump() {
  if (done()) return;
  blocked_ = idle_terminal_ = false;
  char buffer[codec::kMaxPayload];
  for (int reads = 0; reads < kReadsAtOnce; ++reads) {
    const size_t room = std::min(port_.mux().credit(stream_), sizeof buffer);
    if (room == 0 || port_.congested()) {
      blocked_ = true;
      return events_.want(fd_.get(), 0);
    }
    const ssize_t got = ::read(fd_.get(), buffer, room);
    if (got > 0) {
      port_.mux().send(stream_, {buffer, static_cast<size_t>(got)});
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      // A pipe without writers has given all. A terminal's last bytes may still be on their way through the
      // line discipline: it says EIO after them.
      if (last_ && source_ == Source::kPipe) return finish();
      break;
    }
    if (got < 0 && errno == EIO && source_ == Source::kTerminal && !last_) {
      idle_terminal_ = true;
      return events_.want(fd_.get(), 0);
    }
    return finish();
  }
  events_.want(fd_.get(), EPOLLIN);
}

void Output::writers_are_gone() {
  last_ = true;
  pump();
}

void Output::finish() {
  events_.drop(fd_.get());
  fd_.reset();
  idle_terminal_ = false;
  port_.mux().send_end(stream_);
}

Input::Input(Events& events, Port& port, uint16_t stream, UniqueFd fd, Source source)
    : events_(events), port_(port), stream_(stream), fd_(std::move(fd)), source_(source) {
  events_.watch(fd_.get(), 0, [this](uint32_t) { pump(); });
}

Input::~Input() {
  close();
}

void Input::data(std::string_view bytes) {
  if (!fd_.valid()) return port_.mux().consumed(stream_, bytes.size());
  waiting_.append(bytes);
  pump();
}

void Input::end() {
  if (!fd_.valid() || ended_) return;
  ended_ = true;
  if (source_ == Source::kTerminal) waiting_ += kEndOfFile;
  pump();
}

void Input::close() {
  if (!fd_.valid()) return;
  events_.drop(fd_.get());
  fd_.reset();
  port_.mux().consumed(stream_, waiting_.size());
  waiting_.clear();
}

void Input::pump() {
  size_t put = 0;
  while (put < waiting_.size()) {
    const ssize_t n = ::write(fd_.get(), waiting_.data() + put, waiting_.size() - put);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) return close();  // EPIPE: the command does not read; EIO: its terminal is gone
    put += static_cast<size_t>(n);
  }
  port_.mux().consumed(stream_, put);
  waiting_.erase(0, put);
  if (waiting_.empty() && ended_ && source_ == Source::kPipe) return close();
  events_.want(fd_.get(), waiting_.empty() ? 0u : EPOLLOUT);
}

}  // namespace firestop::guest
