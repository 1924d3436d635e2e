// An HTTP/2 connection (RFC 9113) by nghttp2, either side of it: bytes in and out, windows, limits. What is
// common to H2Server and H2Client (h2_server.h, h2_client.h). On the loop's thread; must not be destroyed
// from inside a call of a receiver or a handler, but may be from inside `closed`.
#pragma once

#include <nghttp2/nghttp2.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "http/byte_stream.h"
#include "http/h2_abuse.h"
#include "http/h2_fields.h"
#include "http/stream.h"

namespace firestop::http {

class H2Session {
 public:
  static constexpr uint32_t kMostStreams = 128;          // that the other side may have open
  static constexpr int32_t kStreamWindow = 256 << 10;    // bytes
  static constexpr int32_t kConnectionWindow = 1 << 20;  // bytes: what one connection may make us hold
  static constexpr size_t kMostQueuedFrames = 4096;      // that the other side does not take

  virtual ~H2Session();
  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;

  size_t streams() const { return entries_.size(); }
  // No new streams; `closed` when the last has ended.
  void shut_down();

 protected:
  enum class Side { kServer, kClient };
  struct Entry;
  template <typename Base>
  class Handle;

  H2Session(Loop& loop, std::unique_ptr<ByteStream> bytes, Side side,
            std::function<void(const std::string& why)> closed);
  void start(const std::vector<nghttp2_settings_entry>& settings);

  virtual void on_head(const std::shared_ptr<Entry>& entry, bool ended) = 0;
  virtual void on_stream_gone() {}

  nghttp2_session* native() const { return session_.get(); }
  void adopt(int32_t id, std::shared_ptr<Entry> entry);
  void reset(const Entry& entry, uint32_t code);
  void flush_soon();
  bool failed() const { return failed_; }

  // What a Handle does.
  void send_data(Entry& entry, std::string_view bytes);
  void send_end(Entry& entry, const Headers& trailers);
  void consumed(Entry& entry, size_t bytes);
  void detach(Entry& entry);
  static ssize_t read_data(nghttp2_session*, int32_t, uint8_t* buffer, size_t length, uint32_t* flags,
                           nghttp2_data_source* source, void* self);

 private:
  struct Callbacks;
  struct Free {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  void on_readable();
  void flush();
  bool write_pending();
  void deliver_writable();
  void take(std::string_view bytes);
  void break_off(const std::string& why);
  void abort_all(const std::string& why);
  void close_if_done();
  Entry* find(int32_t id);
  int on_frame(const nghttp2_frame& frame);
  int on_headers(const nghttp2_frame& frame);
  int on_chunk(int32_t id, std::string_view bytes);
  int on_close(int32_t id, uint32_t code);
  void on_end_sent(int32_t id);
  void on_ended(Entry& entry, const Headers& trailers);

  Loop& loop_;
  std::unique_ptr<ByteStream> bytes_;
  std::function<void(const std::string&)> closed_;
  std::unique_ptr<nghttp2_session, Free> session_;
  std::map<int32_t, std::shared_ptr<Entry>> entries_;
  std::vector<std::weak_ptr<Entry>> writable_;  // fell below kLowWater, to be told
  std::string pending_;                         // a frame that the stream did not take wholly
  H2Abuse abuse_;
  Loop::Handle soon_, closing_;
  std::string reason_;  // why it is about to be closed, if that is known
  bool failed_ = false;
  bool ended_ = false;  // the other side sent all
};

// One stream. It outlives neither side alone: the session lets go of it at its close, the handle when its
// user does.
struct H2Session::Entry {
  int32_t id = 0;
  H2Session* session = nullptr;        // null when the session or the stream has gone
  StreamReceiver* receiver = nullptr;  // null when nobody listens
  H2FieldList fields;
  std::string out;  // from `sent` on, not yet framed
  size_t sent = 0;
  Headers trailers;
  int interim = 0;            // heads of 1xx received
  size_t unconsumed = 0;      // received and not given back
  bool has_provider = false;  // a body follows our head
  bool end = false;           // nothing follows `out`
  bool deferred = false;      // nghttp2 waits for resume_data
  bool was_high = false;
  bool head_seen = false;  // the final one of the other side
  bool remote_ended = false;
  bool end_sent = false;  // the frame that ends our side is out
  bool let_go = false;    // its user is gone after having sent all

  size_t buffered() const { return out.size() - sent; }
};

// `Base` is ServerStream or ClientStream.
template <typename Base>
class H2Session::Handle : public Base {
 public:
  explicit Handle(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
  ~Handle() override { let_go(); }

  void set_receiver(StreamReceiver* receiver) override { entry_->receiver = receiver; }
  void send_data(std::string_view bytes) override {
    if (entry_->session) entry_->session->send_data(*entry_, bytes);
  }
  void send_end(const Headers& trailers) override {
    if (entry_->session) entry_->session->send_end(*entry_, trailers);
  }
  size_t buffered() const override { return entry_->buffered(); }
  void consumed(size_t bytes) override {
    if (entry_->session) entry_->session->consumed(*entry_, bytes);
  }
  void abort() override { let_go(); }

 protected:
  Entry& entry() { return *entry_; }

 private:
  void let_go() {
    entry_->receiver = nullptr;
    if (H2Session* session = std::exchange(entry_->session, nullptr)) session->detach(*entry_);
  }

  std::shared_ptr<Entry> entry_;
};

}  // namespace firestop::http
