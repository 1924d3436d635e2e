// HTTP/1.1 towards an origin: one request at a time, the connection is used again.
#pragma once

#include "base/result.h"
#include "http/h1_connection.h"

namespace firestop::http {

class H1Client : public H1Connection {
 public:
  static constexpr int kMostInterim = 32;  // heads of 1xx in one answer

  // `closed` is called once, from the loop, and may destroy the connection; `idle` when it can take another
  // request.
  H1Client(Loop& loop, std::unique_ptr<ByteStream> bytes, Closed closed, std::function<void()> idle);

  bool can_open() const;
  // Error: "http.cannot_open" when it cannot, "http.unwritable" for a head that HTTP/1.1 cannot say.
  Result<std::unique_ptr<ClientStream>> open(const RequestHead& head, StreamReceiver& receiver);

 private:
  void on_head() override;
  void on_exchange_over() override;
  void on_refused(const Error& why) override;
  void on_let_go(Entry& entry) override;

  std::function<void()> idle_;
  codec::Http1ResponseReader reader_;
  int interim_ = 0;
  bool keep_alive_ = true;
};

}  // namespace firestop::http
