// One connection of the guest's, from its first byte on. See carrier.h.
#pragma once

#include "codec/client_hello.h"
#include "codec/http1.h"
#include "egress/carrier.h"
#include "http/h1_server.h"
#include "http/h2_server.h"
#include "http/tls_stream.h"

namespace firestop::egress {

class Carrier::Connection : public http::RequestHandler {
 public:
  Connection(Carrier& carrier, Guest guest, Way way);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  std::list<std::unique_ptr<Connection>>::iterator place_in_list;

 private:
  void plan();
  void read_some();
  void look();
  void look_at_proxy_request();
  void look_at_first_bytes();
  void serve_as_proxy();
  void answer_connect(const codec::Http1Request& request);
  void refuse_connect(const Denial& denial);
  void on_hello(const codec::ClientHello& hello);
  void open_tls(const codec::ClientHello& hello);
  void serve(std::unique_ptr<http::ByteStream> bytes, const std::string& protocol);
  void forward(const char* scheme);
  void end_if_idle();
  void stop_reading();
  Crossing crossing_of(const char* verdict, const std::string& code, const std::string& detail) const;
  void tell(const Crossing& crossing, const Denial& denial);
  void drop(const char* verdict, const std::string& code, const std::string& detail);
  void gone();
  void on_request(http::RequestHead head, std::unique_ptr<http::ServerStream> stream) override;

  Carrier& carrier_;
  UniqueFd socket_;
  const Way way_;
  Origin origin_;
  std::shared_ptr<void> place_;
  ConnectionPlan plan_;
  std::string first_;    // read, and not yet anybody's
  bool by_name_ = true;  // proxy requests in absolute-form: each names its origin
  bool plain_h2_ = false;
  bool asked_lately_ = false;
  bool gone_ = false;
  int64_t started_us_;
  http::Deadline deadline_;
  Loop::Handle watch_;
  std::unique_ptr<http::TlsStream> shaking_;
  std::unique_ptr<http::H1Server> h1_;
  std::unique_ptr<http::H2Server> h2_;
};

}  // namespace firestop::egress
