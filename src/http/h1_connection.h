// An HTTP/1.1 connection (RFC 9112), either side of it: bytes in and out, one exchange at a time, limits of
// time. What is common to H1Server and H1Client. On the loop's thread; must not be destroyed from inside a
// call of a receiver or a handler, but may be from inside `closed`. It holds at most what is read at once
// (32 KiB), kHighWater and one send more of each direction.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "codec/http1.h"
#include "http/byte_stream.h"
#include "http/deadline.h"
#include "http/stream.h"

namespace firestop::http {

class H1Connection {
 public:
  static constexpr std::chrono::seconds kStall{120};  // the other side neither takes nor gives what is due
  static constexpr std::chrono::seconds kLinger{2};   // to read on after our end, so that it arrives

  virtual ~H1Connection();
  H1Connection(const H1Connection&) = delete;
  H1Connection& operator=(const H1Connection&) = delete;

  // No new exchanges; `closed` when the present one has ended.
  void shut_down();
  void set_stall(std::chrono::milliseconds stall) { stall_ = stall; }

 protected:
  struct Entry;
  template <typename Base>
  class Handle;
  using Closed = std::function<void(const std::string& why)>;

  H1Connection(Loop& loop, std::unique_ptr<ByteStream> bytes, codec::Http1Reader& reader, Closed closed);
  void start();

  virtual void on_head() = 0;
  virtual void on_exchange_over() = 0;            // both directions have ended in order
  virtual void on_refused(const Error& why) = 0;  // what was read is not HTTP; nothing more is read
  virtual bool may_read_on() const { return true; }
  virtual bool body_is_due() const { return false; }  // the other side is to send without pauses
  virtual void on_written() { deadline_.clear(); }    // what was held up
  virtual void on_partial_head() {}                   // some of it is there
  virtual void on_let_go(Entry& entry) = 0;           // its user is gone

  // The head of what is sent, and so what may follow it.
  void begin_sending(const codec::Http1Framing& framing) {
    out_framing_ = framing;
    out_left_ = framing.length;
  }
  std::string& out() { return out_; }
  size_t buffered() const { return out_.size() - out_sent_; }
  void adopt(std::shared_ptr<Entry> entry) { entry_ = std::move(entry); }
  const std::shared_ptr<Entry>& entry() const { return entry_; }
  void drop_entry();
  void become_tunnel();
  void work_soon();
  void finish();  // closes in order, once all is written
  void break_off(const std::string& why);
  bool failed() const { return failed_; }
  bool finishing() const { return finishing_; }
  bool is_tunnel() const { return tunnel_; }
  std::chrono::milliseconds stall() const { return stall_; }
  bool shutting_down() const { return shutting_down_; }
  bool input_ended() const { return input_ended_; }
  bool has_input() const { return !in_.empty(); }
  Deadline& deadline() { return deadline_; }
  void send_data(Entry& entry, std::string_view bytes);
  void send_end(Entry& entry, const Headers& trailers);

 private:
  void on_readable();
  void on_deadline();
  void take(std::string_view bytes);
  void take_end();
  bool act(const Result<codec::Http1Reader::Step>& step);
  void work();
  void flush();
  void finish_if_written();
  void update_reading();
  void exchange_over_if_done();
  void consumed(Entry& entry, size_t bytes);

  Loop& loop_;
  std::unique_ptr<ByteStream> bytes_;
  codec::Http1Reader& reader_;
  Closed closed_;
  std::shared_ptr<Entry> entry_;
  std::string in_;   // read, and not yet its turn
  std::string out_;  // from out_sent_ on, not yet written
  size_t out_sent_ = 0;
  codec::Http1Framing out_framing_;
  uint64_t out_left_ = 0;
  bool tunnel_ = false;
  bool input_ended_ = false, input_end_taken_ = false;
  bool failed_ = false, finishing_ = false, lingering_ = false, shutting_down_ = false;
  bool reading_paused_ = false;
  bool blocked_ = false;  // the other side does not take what we write
  std::chrono::milliseconds stall_ = kStall;
  bool half_closed_ = false;  // of a tunnel, our half
  Deadline deadline_;
  Loop::Handle soon_, closing_;
};

// One exchange. It outlives neither side alone: the connection lets go of it at its end, the handle when its
// user does.
struct H1Connection::Entry {
  H1Connection* connection = nullptr;  // null when the connection or the exchange has gone
  StreamReceiver* receiver = nullptr;  // null when nobody listens
  size_t unconsumed = 0;
  bool held = false;  // reading waits for consumed()
  bool was_high = false;
  bool head_sent = false;  // the final one, of a server
  bool end = false;        // all of our side was said
  bool remote_ended = false;
  bool let_go = false;
};

// `Base` is ServerStream or ClientStream.
template <typename Base>
class H1Connection::Handle : public Base {
 public:
  explicit Handle(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
  ~Handle() override { let_go(); }

  void set_receiver(StreamReceiver* receiver) override { entry_->receiver = receiver; }
  void send_data(std::string_view bytes) override {
    if (entry_->connection) entry_->connection->send_data(*entry_, bytes);
  }
  void send_end(const Headers& trailers) override {
    if (entry_->connection) entry_->connection->send_end(*entry_, trailers);
  }
  size_t buffered() const override { return entry_->connection ? entry_->connection->buffered() : 0; }
  void consumed(size_t bytes) override {
    if (entry_->connection) entry_->connection->consumed(*entry_, bytes);
  }
  void abort() override { let_go(); }

 protected:
  Entry& entry() { return *entry_; }

 private:
  void let_go() {
    entry_->receiver = nullptr;
    if (entry_->let_go) return;
    entry_->let_go = true;
    if (entry_->connection) entry_->connection->on_let_go(*entry_);
  }

  std::shared_ptr<Entry> entry_;
};

}  // namespace firestop::http
