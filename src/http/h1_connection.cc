#include "http/h1_connection.h"

#include <algorithm>

namespace firestop::http {
namespace {

constexpr size_t kReadSize = 32u << 10;
constexpr int kMostReads = 4;  // in a row, so that one connection does not hold up the others

using Event = codec::Http1Reader::Event;
using Kind = codec::Http1Framing::Kind;

}  // namespace

H1Connection::H1Connection(Loop& loop, std::unique_ptr<ByteStream> bytes, codec::Http1Reader& reader,
                           Closed closed)
    : loop_(loop),
      bytes_(std::move(bytes)),
      reader_(reader),
      closed_(std::move(closed)),
      deadline_(loop, [this] { on_deadline(); }) {}

H1Connection::~H1Connection() {
  if (entry_) entry_->connection = nullptr;
}

void H1Connection::start() {
  bytes_->want([this] { on_readable(); }, [this] { work(); });
}

void H1Connection::shut_down() {
  shutting_down_ = true;
  if (!entry_) finish();
}

void H1Connection::on_readable() {
  char buffer[kReadSize];
  for (int i = 0; i < kMostReads && !failed_ && !reading_paused_; ++i) {
    const auto io = bytes_->read(buffer, sizeof buffer);
    if (io.state == ByteStream::State::kWouldBlock) break;
    if (io.state == ByteStream::State::kFailed) return break_off("the connection broke");
    if (io.state == ByteStream::State::kEnd) {
      input_ended_ = true;
      if (lingering_) return break_off("");
      take_end();
      break;
    }
    if (lingering_) continue;
    take({buffer, io.bytes});
    if (!failed_ && body_is_due() && !blocked_) deadline_.set(stall_);
    if (!failed_) update_reading();
  }
  work();
}

void H1Connection::take(std::string_view bytes) {
  while (!failed_ && !finishing_) {
    if (!may_read_on()) {
      in_.assign(bytes);
      return;
    }
    const auto step = reader_.next(bytes);
    if (!act(step)) return;
  }
}

void H1Connection::take_end() {
  if (input_end_taken_ || failed_ || finishing_ || !in_.empty() || !may_read_on()) return;
  input_end_taken_ = true;
  act(reader_.end_of_input());
  if (!entry_) return finish();
  if (!entry_->remote_ended) break_off("the other side closed the connection");
}

// False: nothing more can be taken now.
bool H1Connection::act(const Result<codec::Http1Reader::Step>& step) {
  if (!step) {
    on_refused(step.error());
    return false;
  }
  const auto entry = entry_;
  switch (step->event) {
    case Event::kMore:
      if (!entry && !reader_.idle()) on_partial_head();
      return false;
    case Event::kHead:
      on_head();
      return true;
    case Event::kData:
      if (!entry || !entry->receiver) return true;
      entry->unconsumed += step->data.size();
      if (entry->unconsumed > kHighWater) entry->held = true;
      entry->receiver->on_data(step->data);
      return true;
    case Event::kEnd:
      if (!entry) return true;
      entry->remote_ended = true;
      deadline_.clear();
      if (entry->receiver) entry->receiver->on_end(reader_.take_trailers());
      exchange_over_if_done();
      return true;
  }
  return false;
}

void H1Connection::work_soon() {
  if (soon_ || failed_) return;
  soon_ = loop_.once(std::chrono::milliseconds(0), [this] {
    const auto done = std::move(soon_);
    work();
  });
}

// What could not be done where it came up: the next message that waits, writing, telling of room.
void H1Connection::work() {
  if (!in_.empty() && !failed_ && may_read_on()) {
    const std::string bytes = std::exchange(in_, {});
    take(bytes);
  }
  if (input_ended_) take_end();
  flush();
  if (failed_) return;
  if (entry_ && entry_->was_high && buffered() <= kLowWater) {
    entry_->was_high = false;
    const auto entry = entry_;
    if (entry->receiver) entry->receiver->on_writable();
  }
  if (finishing_) finish_if_written();
  if (!failed_) update_reading();
}

void H1Connection::flush() {
  bool progress = false;
  while (!failed_ && buffered() > 0) {
    const auto io = bytes_->write(std::string_view(out_).substr(out_sent_));
    if (io.state == ByteStream::State::kWouldBlock) break;
    if (io.state != ByteStream::State::kOk) return break_off("the connection broke");
    out_sent_ += io.bytes;
    progress = true;
  }
  if (failed_) return;
  const bool blocked = buffered() > 0;
  if (!blocked) {
    out_.clear();
    if (!entry_ && out_.capacity() > kReadSize) out_.shrink_to_fit();  // idle ones hold little
    out_sent_ = 0;
  } else if (out_sent_ > kHighWater) {
    out_.erase(0, out_sent_);
    out_sent_ = 0;
  }
  bytes_->wait_writable(blocked);
  if (blocked) {
    if (progress || !blocked_) deadline_.set(stall_);
  } else if (blocked_) {
    on_written();
  }
  // Who has closed its half may be gone altogether, which only writing would show.
  if (!blocked && input_ended_ && entry_ && (progress || !deadline_.is_set())) deadline_.set(stall_);
  blocked_ = blocked;
  if (!blocked && tunnel_ && entry_ && entry_->end && !std::exchange(half_closed_, true))
    bytes_->shutdown_write();
}

// An exchange or a head takes too long, or there was none for too long.
void H1Connection::on_deadline() {
  if (entry_ && entry_->held && !blocked_) return deadline_.set(stall_);  // it is we who do not read
  break_off(entry_ || !reader_.idle() ? "the other side is too slow" : "");
}

void H1Connection::update_reading() {
  const bool pause = input_ended_ || (!lingering_ && (!in_.empty() || (entry_ && entry_->held)));
  if (pause == reading_paused_) return;
  reading_paused_ = pause;
  bytes_->pause_reading(pause);
}

void H1Connection::consumed(Entry& entry, size_t bytes) {
  entry.unconsumed -= std::min(bytes, entry.unconsumed);
  if (!entry.held || entry.unconsumed > kLowWater) return;
  entry.held = false;
  work_soon();
}

void H1Connection::send_data(Entry& entry, std::string_view bytes) {
  if (failed_ || entry.end || bytes.empty()) return;
  if (tunnel_ || out_framing_.kind == Kind::kUntilClose) {
    out_.append(bytes);
  } else if (out_framing_.kind == Kind::kChunked) {
    codec::append_http1_chunk(out_, bytes);
  } else if (bytes.size() <= out_left_) {
    out_left_ -= bytes.size();
    out_.append(bytes);
  } else {
    return break_off("a body is longer than was said");
  }
  if (buffered() > kHighWater) entry.was_high = true;
  work_soon();
}

void H1Connection::send_end(Entry& entry, const Headers& trailers) {
  if (failed_ || entry.end) return;
  if (!tunnel_ && out_framing_.kind == Kind::kChunked) {
    if (!codec::append_http1_last_chunk(out_, trailers)) return break_off("trailers that cannot be sent");
  } else if (!tunnel_ && out_framing_.kind == Kind::kLength && out_left_ > 0) {
    return break_off("a body is shorter than was said");
  }
  entry.end = true;
  exchange_over_if_done();
  work_soon();
}

void H1Connection::exchange_over_if_done() {
  const auto entry = entry_;
  if (!entry || !entry->end || failed_) return;
  if (tunnel_) {
    if (!entry->remote_ended) return;
    drop_entry();
    return finish();
  }
  if (entry->remote_ended) on_exchange_over();
}

void H1Connection::drop_entry() {
  entry_->connection = nullptr;
  entry_.reset();
}

void H1Connection::become_tunnel() {
  tunnel_ = true;
  deadline_.clear();
}

void H1Connection::finish() {
  if (failed_ || finishing_) return;
  finishing_ = true;
  in_.clear();
  work_soon();
}

void H1Connection::finish_if_written() {
  if (buffered() > 0 || lingering_) return;
  bytes_->shutdown_write();
  // To close at once would send a reset when the other side still sends, and it might lose the answer.
  if (input_ended_) return break_off("");
  lingering_ = true;
  deadline_.set(kLinger);
}

void H1Connection::break_off(const std::string& why) {
  if (failed_) return;
  failed_ = true;
  soon_.reset();
  deadline_.clear();
  if (entry_ && !(entry_->end && buffered() == 0)) bytes_->break_on_close();
  bytes_->pause_reading(true);
  bytes_->wait_writable(false);
  closing_ = loop_.once(std::chrono::milliseconds(0), [this, why] {
    if (const auto entry = std::exchange(entry_, nullptr)) {
      entry->connection = nullptr;
      if (entry->receiver) entry->receiver->on_abort(why.empty() ? "the connection was closed" : why);
    }
    const auto closed = std::move(closed_);
    const auto keep = std::move(closing_);
    if (closed) closed(why);  // may destroy *this
  });
}

}  // namespace firestop::http
