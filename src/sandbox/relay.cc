#include "sandbox/relay.h"

#include <algorithm>
#include <cerrno>

namespace firestop::sandbox {

Outflow::Outflow(Loop& loop, channel::Mux& mux, uint16_t stream, UniqueFd fd, std::function<void()> on_queued,
                 std::function<void()> on_done)
    : loop_(loop),
      mux_(mux),
      stream_(stream),
      fd_(std::move(fd)),
      on_queued_(std::move(on_queued)),
      on_done_(std::move(on_done)) {
  mux_.open_receive(stream_);
}

void Outflow::data(std::string_view bytes) {
  if (reader_gone_ || done_) {
    mux_.consumed(stream_, bytes.size());
    return;
  }
  buffer_.append(bytes);
  if (!watch_)
    watch_ = loop_.watch(fd_.get(), Loop::kWritable, [this](int) { write_some(); });
  else
    watch_->set_events(Loop::kWritable);
}

void Outflow::end() {
  ended_ = true;
  if (written_ == buffer_.size()) finish();
}

void Outflow::write_some() {
  while (written_ < buffer_.size()) {
    const ssize_t n = ::write(fd_.get(), buffer_.data() + written_, buffer_.size() - written_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      reader_gone_ = true;
      mux_.consumed(stream_, buffer_.size() - written_);
      buffer_.clear();
      written_ = 0;
      on_queued_();
      finish();
      return;
    }
    written_ += static_cast<size_t>(n);
    mux_.consumed(stream_, static_cast<size_t>(n));
  }
  on_queued_();
  if (written_ < buffer_.size()) return;
  buffer_.clear();
  written_ = 0;
  if (ended_)
    finish();
  else
    watch_->set_events(0);
}

void Outflow::finish() {
  if (done_) return;
  done_ = true;
  watch_.reset();
  fd_.reset();
  on_done_();
}

Inflow::Inflow(Loop& loop, channel::Mux& mux, uint16_t stream, UniqueFd fd, std::function<void()> on_queued)
    : mux_(mux), stream_(stream), fd_(std::move(fd)), on_queued_(std::move(on_queued)) {
  mux_.open_send(stream_);
  watch_ = loop.watch(fd_.get(), 0, [this](int) { read_some(); });
}

void Inflow::writable() {
  if (watch_) watch_->set_events(Loop::kReadable);
}

void Inflow::stop() {
  watch_.reset();
  fd_.reset();
}

void Inflow::read_some() {
  char buffer[64u << 10];
  const size_t room = std::min(sizeof buffer, mux_.credit(stream_));
  if (room == 0) {
    // send() of nothing marks the stream as dry, so that credit wakes it.
    mux_.send(stream_, {});
    watch_->set_events(0);
    return;
  }
  const ssize_t n = ::read(fd_.get(), buffer, room);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) {
    mux_.send_end(stream_);
    stop();
  } else {
    mux_.send(stream_, {buffer, static_cast<size_t>(n)});
  }
  on_queued_();
}

}  // namespace firestop::sandbox
