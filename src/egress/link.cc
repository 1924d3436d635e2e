#include "egress/link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "codec/frame.h"
#include "egress/crossing_json.h"

namespace firestop::egress {

void LinkWriter::append(const codec::JsonObject& message) {
  codec::append_frame(buffer_, codec::FrameType::kControl, 0, codec::write_json(message));
}

void LinkWriter::say(const codec::JsonObject& message) {
  append(message);
  flush();
}

void LinkWriter::crossing(const Crossing& crossing) {
  if (broken_) return;
  const size_t unsent = buffer_.size() - sent_;
  const bool alarm = crossing.kind == Crossing::Kind::kAlarm;
  // What is done about an alarm is the sandbox's: one that cannot be told is the end of this process, and of
  // the run.
  if (alarm && unsent > 2 * kMostUnsent) ::_exit(1);
  if (!alarm && (lost_ > 0 || unsent > kMostUnsent)) {
    ++lost_;
    ++all_lost_;
    return;
  }
  told_.clear();
  append_told(told_, crossing);
  codec::append_frame(buffer_, codec::FrameType::kControl, 0, told_);
  flush();
}

void LinkWriter::flush() {
  while (!broken_ && sent_ < buffer_.size()) {
    const ssize_t n = ::send(socket_, buffer_.data() + sent_, buffer_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      broken_ = true;
      return;
    }
    sent_ += static_cast<size_t>(n);
  }
  if (lost_ > 0 && buffer_.size() - sent_ <= kMostUnsent / 2) {
    append(codec::JsonObject{{"type", "lost"}, {"count", lost_}});
    lost_ = 0;
    return flush();
  }
  if (sent_ == buffer_.size()) {
    buffer_.clear();
    sent_ = 0;
  } else if (sent_ > kMostUnsent / 4) {
    buffer_.erase(0, sent_);
    sent_ = 0;
  }
  if (on_waiting) on_waiting(!buffer_.empty());
}

}  // namespace firestop::egress
