#include "http/h2_session.h"

#include <algorithm>

#include "http/h2_native.h"

namespace firestop::http {
namespace {

constexpr size_t kReadSize = 32u << 10;
constexpr int kMostReads = 8;  // in a row, so that one connection does not hold up the others

std::string_view view(const uint8_t* data, size_t size) {
  // SAFETY: bytes may be read as characters.
  return {reinterpret_cast<const char*>(data), size};
}

using Options = std::unique_ptr<nghttp2_option, decltype(&nghttp2_option_del)>;
using CallbackTable = std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)>;

Options make_options() {
  nghttp2_option* made = nullptr;
  nghttp2_option_new(&made);
  nghttp2_option_set_no_auto_window_update(made, 1);
  nghttp2_option_set_max_outbound_ack(made, 128);
  nghttp2_option_set_max_settings(made, 32);
  nghttp2_option_set_max_continuations(made, 8);
  nghttp2_option_set_stream_reset_rate_limit(made, 500, 50);
  nghttp2_option_set_no_closed_streams(made, 1);
  return {made, nghttp2_option_del};
}

}  // namespace

struct H2Session::Callbacks {
  static H2Session& self(void* user) { return *static_cast<H2Session*>(user); }

  static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
    const auto now = H2Abuse::Clock::now();
    auto& abuse = self(user).abuse_;
    switch (frame->type) {
      case NGHTTP2_DATA:
        abuse.data(frame->length);
        return frame->length > 0 || (frame->flags & NGHTTP2_FLAG_END_STREAM) || abuse.idle_frame(now)
                   ? 0
                   : NGHTTP2_ERR_CALLBACK_FAILURE;
      case NGHTTP2_HEADERS:
        return 0;
      case NGHTTP2_RST_STREAM:
        return abuse.reset(now) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
      default:
        return abuse.idle_frame(now) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static int sent_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& abuse = self(user).abuse_;
    const bool carries_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (carries_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
      self(user).on_end_sent(frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_DATA) abuse.data(frame->hd.length);
    // Resets that the other side made us send cost as much as its own.
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
        frame->rst_stream.error_code != NGHTTP2_CANCEL && !abuse.reset(H2Abuse::Clock::now()))
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    return 0;
  }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
      self(user).adopt(frame->hd.stream_id, std::make_shared<Entry>());
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* user) {
    Entry* entry = self(user).find(frame->hd.stream_id);
    if (!entry) return 0;
    const bool fits = entry->fields.add(view(name, name_size), view(value, value_size));
    return fits ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return self(user).on_frame(*frame);
  }

  static int chunk(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* user) {
    return self(user).on_chunk(id, view(data, size));
  }

  static int close(nghttp2_session*, int32_t id, uint32_t code, void* user) {
    return self(user).on_close(id, code);
  }

  static CallbackTable table() {
    nghttp2_session_callbacks* made = nullptr;
    nghttp2_session_callbacks_new(&made);
    nghttp2_session_callbacks_set_on_begin_frame_callback(made, begin_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(made, sent_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(made, header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, close);
    return {made, nghttp2_session_callbacks_del};
  }
};

H2Session::H2Session(Loop& loop, std::unique_ptr<ByteStream> bytes, Side side,
                     std::function<void(const std::string&)> closed)
    : loop_(loop), bytes_(std::move(bytes)), closed_(std::move(closed)), abuse_(H2Abuse::Clock::now()) {
  const auto callbacks = Callbacks::table();
  const auto options = make_options();
  nghttp2_session* made = nullptr;
  const auto make = side == Side::kServer ? nghttp2_session_server_new2 : nghttp2_session_client_new2;
  make(&made, callbacks.get(), this, options.get());
  session_.reset(made);
}

H2Session::~H2Session() {
  for (auto& [id, entry] : entries_) entry->session = nullptr;
}

void H2Session::start(const std::vector<nghttp2_settings_entry>& settings) {
  nghttp2_submit_settings(native(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(native(), NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  bytes_->want([this] { on_readable(); }, [this] { flush(); });
  flush_soon();
}

void H2Session::shut_down() {
  if (failed_) return;
  nghttp2_submit_goaway(native(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(native()),
                        NGHTTP2_NO_ERROR, nullptr, 0);
  flush_soon();
}

void H2Session::adopt(int32_t id, std::shared_ptr<Entry> entry) {
  entry->id = id;
  entry->session = this;
  entries_[id] = std::move(entry);
}

H2Session::Entry* H2Session::find(int32_t id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.get();
}

void H2Session::reset(const Entry& entry, uint32_t code) {
  nghttp2_submit_rst_stream(native(), NGHTTP2_FLAG_NONE, entry.id, code);
  flush_soon();
}

// Writing happens from the loop only: a user's send never calls a user's receiver.
void H2Session::flush_soon() {
  if (!soon_ && !failed_)
    soon_ = loop_.once(std::chrono::milliseconds(0), [this] {
      const auto done = std::move(soon_);
      flush();
    });
}

void H2Session::send_data(Entry& entry, std::string_view bytes) {
  if (failed_ || entry.end || bytes.empty()) return;
  entry.out.append(bytes);
  if (entry.buffered() > kHighWater) entry.was_high = true;
  if (entry.deferred) {
    entry.deferred = false;
    nghttp2_session_resume_data(native(), entry.id);
  }
  flush_soon();
}

void H2Session::send_end(Entry& entry, const Headers& trailers) {
  if (failed_ || entry.end) return;
  entry.end = true;
  entry.trailers = trailers_to_h2(trailers);
  if (entry.deferred) {
    entry.deferred = false;
    nghttp2_session_resume_data(native(), entry.id);
  }
  flush_soon();
}

void H2Session::consumed(Entry& entry, size_t bytes) {
  bytes = std::min(bytes, entry.unconsumed);
  if (failed_ || bytes == 0) return;
  entry.unconsumed -= bytes;
  nghttp2_session_consume(native(), entry.id, bytes);
  flush_soon();
}

void H2Session::detach(Entry& entry) {
  if (failed_) return;
  consumed(entry, entry.unconsumed);
  const bool client = nghttp2_session_check_server_session(native()) == 0;
  if (!entry.end || (client && !entry.remote_ended)) return reset(entry, NGHTTP2_CANCEL);
  // What was sent whole still goes out; what the other side might go on sending is not wanted.
  entry.let_go = true;
  if (entry.end_sent) on_end_sent(entry.id);
}

void H2Session::on_end_sent(int32_t id) {
  Entry* entry = find(id);
  if (!entry) return;
  entry->end_sent = true;
  if (entry->let_go && !entry->remote_ended) reset(*entry, NGHTTP2_NO_ERROR);
}

ssize_t H2Session::read_data(nghttp2_session* session, int32_t id, uint8_t* buffer, size_t length,
                             uint32_t* flags, nghttp2_data_source* source, void* user) {
  auto& entry = *static_cast<Entry*>(source->ptr);
  auto& self = *static_cast<H2Session*>(user);
  const size_t size = std::min(length, entry.buffered());
  if (size == 0 && !entry.end) {
    entry.deferred = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  std::copy_n(entry.out.data() + entry.sent, size, buffer);
  entry.sent += size;
  if (entry.buffered() == 0 || entry.sent > kHighWater) {
    entry.out.erase(0, entry.sent);
    entry.sent = 0;
  }
  if (entry.was_high && entry.buffered() <= kLowWater) {
    entry.was_high = false;
    self.writable_.push_back(self.entries_[id]);
  }
  if (entry.end && entry.buffered() == 0) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!entry.trailers.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const NativeFields fields(entry.trailers);
      nghttp2_submit_trailer(session, id, fields.data(), fields.size());
    }
  }
  return static_cast<ssize_t>(size);
}

void H2Session::on_readable() {
  char buffer[kReadSize];
  for (int i = 0; i < kMostReads && !failed_; ++i) {
    const auto io = bytes_->read(buffer, sizeof buffer);
    if (io.state == ByteStream::State::kWouldBlock) break;
    if (io.state == ByteStream::State::kEnd) {
      ended_ = true;
      bytes_->pause_reading(true);
      break;
    }
    if (io.state == ByteStream::State::kFailed) return break_off("the connection broke");
    take({buffer, io.bytes});
  }
  flush();
}

void H2Session::take(std::string_view bytes) {
  // SAFETY: characters may be read as bytes.
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const auto taken = nghttp2_session_mem_recv(native(), data, bytes.size());
  if (taken == NGHTTP2_ERR_CALLBACK_FAILURE) {
    reason_ = "the other side floods the connection";
    nghttp2_session_terminate_session(native(), NGHTTP2_ENHANCE_YOUR_CALM);
    flush();
    return break_off(reason_);
  }
  if (taken < 0) return break_off(std::string("not HTTP/2: ") + nghttp2_strerror(static_cast<int>(taken)));
}

bool H2Session::write_pending() {
  while (!pending_.empty()) {
    const auto io = bytes_->write(pending_);
    if (io.state == ByteStream::State::kWouldBlock) {
      bytes_->wait_writable(true);
      return false;
    }
    if (io.state != ByteStream::State::kOk) {
      break_off("the connection broke");
      return false;
    }
    pending_.erase(0, io.bytes);
  }
  return true;
}

void H2Session::flush() {
  while (!failed_ && write_pending()) {
    // Small frames go out together; one that is large fills the buffer alone.
    while (pending_.size() < kReadSize) {
      const uint8_t* data = nullptr;
      const auto size = nghttp2_session_mem_send(native(), &data);
      if (size < 0) return break_off("HTTP/2 cannot go on");
      if (size == 0) break;
      pending_.append(view(data, static_cast<size_t>(size)));
    }
    if (pending_.empty()) {
      bytes_->wait_writable(false);
      break;
    }
  }
  if (failed_) return;
  if (nghttp2_session_get_outbound_queue_size(native()) > kMostQueuedFrames)
    return break_off("the other side takes no frames");
  deliver_writable();
  close_if_done();
}

void H2Session::deliver_writable() {
  for (const auto& weak : std::exchange(writable_, {}))
    if (const auto entry = weak.lock(); entry && entry->receiver) entry->receiver->on_writable();
}

void H2Session::close_if_done() {
  if (failed_) return;
  const bool done = !nghttp2_session_want_read(native()) && !nghttp2_session_want_write(native());
  if (done) return break_off(reason_);
  if (ended_) break_off(entries_.empty() ? "" : "the other side closed the connection");
}

void H2Session::break_off(const std::string& why) {
  if (failed_) return;
  failed_ = true;
  soon_.reset();
  bytes_->pause_reading(true);
  bytes_->wait_writable(false);
  closing_ = loop_.once(std::chrono::milliseconds(0), [this, why] {
    abort_all(why);
    const auto closed = std::move(closed_);
    const auto keep = std::move(closing_);
    if (closed) closed(why);  // may destroy *this
  });
}

void H2Session::abort_all(const std::string& why) {
  for (auto& [id, entry] : std::exchange(entries_, {})) {
    entry->session = nullptr;
    const bool over = entry->remote_ended && entry->end && entry->buffered() == 0;
    if (entry->receiver && !over) entry->receiver->on_abort(why.empty() ? "the connection was closed" : why);
  }
}

int H2Session::on_frame(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_HEADERS) return on_headers(frame);
  Entry* entry = find(frame.hd.stream_id);
  if (frame.hd.type == NGHTTP2_DATA && entry && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM))
    on_ended(*entry, {});
  return 0;
}

int H2Session::on_headers(const nghttp2_frame& frame) {
  const auto found = entries_.find(frame.hd.stream_id);
  if (found == entries_.end()) return 0;
  const auto entry = found->second;
  const bool ended = frame.hd.flags & NGHTTP2_FLAG_END_STREAM;
  if (entry->head_seen) {
    on_ended(*entry, trailers_from_h2(entry->fields));
    return 0;
  }
  on_head(entry, ended);
  entry->fields.clear();
  if (ended && entry->head_seen) on_ended(*entry, {});
  return 0;
}

void H2Session::on_ended(Entry& entry, const Headers& trailers) {
  if (entry.remote_ended) return;
  entry.remote_ended = true;
  if (entry.receiver) entry.receiver->on_end(trailers);
}

int H2Session::on_chunk(int32_t id, std::string_view bytes) {
  Entry* entry = find(id);
  if (!entry || !entry->receiver) {
    nghttp2_session_consume(native(), id, bytes.size());
    return 0;
  }
  entry->unconsumed += bytes.size();
  entry->receiver->on_data(bytes);
  return 0;
}

int H2Session::on_close(int32_t id, uint32_t code) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return 0;
  const auto entry = found->second;
  entries_.erase(found);
  entry->session = nullptr;
  if (entry->unconsumed > 0)
    nghttp2_session_consume_connection(native(), std::exchange(entry->unconsumed, 0));
  // An answer that was not taken to its end was not answered, whatever code its client gives.
  const bool cut_short = nghttp2_session_check_server_session(native()) != 0 && !entry->end_sent;
  if (entry->receiver && (code != NGHTTP2_NO_ERROR || !entry->remote_ended || cut_short))
    entry->receiver->on_abort(std::string("the stream was reset: ") + nghttp2_http2_strerror(code));
  on_stream_gone();
  return 0;
}

}  // namespace firestop::http
