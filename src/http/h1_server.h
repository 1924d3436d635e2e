// HTTP/1.1 towards the guest: every request becomes a call of the handler, one at a time; pipelined ones
// wait. A request that is not clear is answered with 400 (or 417, 431, 505) and the connection ends.
#pragma once

#include "http/h1_connection.h"

namespace firestop::http {

class H1Server : public H1Connection {
 public:
  static constexpr std::chrono::seconds kHeadTime{30};  // from a head's first byte to its last
  static constexpr std::chrono::seconds kIdle{120};     // between requests

  struct Options {
    std::string scheme = "https";  // of requests that do not say
    std::chrono::milliseconds head_time = kHeadTime, idle = kIdle;
    std::string refusal_code = "http.malformed";  // of the denial that answers what is no request
    std::function<void(const Error&, int status)> refused;
  };
  // `handler` outlives it. `closed` is called once, from the loop, and may destroy the connection.
  H1Server(Loop& loop, std::unique_ptr<ByteStream> bytes, RequestHandler& handler, Options options,
           Closed closed);

 private:
  class Response;
  void on_head() override;
  void on_exchange_over() override;
  void on_refused(const Error& why) override;
  bool may_read_on() const override;
  bool body_is_due() const override;
  void on_written() override;
  void on_partial_head() override;
  void on_let_go(Entry& entry) override;
  void send_response(Entry& entry, const ResponseHead& head);
  void wait_for_request();

  RequestHandler& handler_;
  Options options_;
  codec::Http1RequestReader reader_;
  bool has_no_body(int status) const;
  codec::Http1Framing answer_framing(const ResponseHead& head);

  codec::Http1Request request_;  // the present one, without what was handed on
  bool head_started_ = false;
  bool upgrade_open_ = false;  // an upgrade is asked for and not yet answered: what follows waits
  bool continue_due_ = false;  // 100 was asked for and not yet sent
  bool keep_alive_ = true;
};

// Status that says why what was read is no request.
int status_of_refusal(const Error& why);

}  // namespace firestop::http
