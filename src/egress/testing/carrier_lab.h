// For tests of the carrier: a guard that does as it is told, origins on loopback behind any name, guests that
// are blocking sockets on a thread beside the loop.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "egress/carrier.h"
#include "egress/testing/sockets.h"

namespace firestop::egress::testing {

// Exchanges are allowed unless `deny` says otherwise; heads and filters may be changed by the test.
class ObedientGuard final : public Guard {
 public:
  std::optional<Denial> name(std::string_view) override { return std::nullopt; }
  ConnectionPlan connection(const Authority& to) override;
  std::unique_ptr<Exchange> exchange(const Origin& origin) override;
  // Of a name or a head that has `placeholder` in it.
  std::optional<Denial> alarm_in_server_name(std::string_view name) override;
  std::optional<Denial> alarm_in(const http::RequestHead& head) override;

  std::string placeholder = "PLACEHOLDER";
  std::function<ConnectionPlan(const Authority&)> plan;
  std::function<std::optional<Denial>(http::RequestHead&, const Origin&)> admit;
  std::function<std::optional<Denial>(http::ResponseHead&)> answer;
  std::function<std::unique_ptr<Filter>()> request_body, response_body, websocket_out, websocket_in;
  std::vector<Origin> origins;
  std::vector<http::RequestHead> heads;  // as they came

 private:
  class Obedient;
};

// To 127.0.0.1, whatever the name; `failure` instead if it is set.
class LoopbackDialer final : public Dialer {
 public:
  explicit LoopbackDialer(Loop& loop) : loop_(loop) {}
  std::unique_ptr<Attempt> dial(const Route& route, Done done, Failed failed) override;

  uint16_t port = 0;
  std::optional<Denial> failure;
  int dialled = 0;

 private:
  class Dialling;
  Loop& loop_;
};

// Blocking TLS over a blocking socket.
class TlsPeer {
 public:
  TlsPeer() = default;
  // Fails the test unless the handshake succeeds; `failed` says whether it was to.
  static TlsPeer client(UniqueFd socket, const std::string& trusted_pem, const std::string& name,
                        const std::string& alpn = "");
  static TlsPeer server(UniqueFd socket, http::SslPtr ssl);
  bool ok() const { return ok_; }
  void send(std::string_view bytes);
  std::string receive(size_t most);  // what one read gives, "" at the end
  std::string receive_until(std::string_view end);
  std::string receive_exactly(size_t size);
  std::string receive_all();
  std::string protocol() const;

 private:
  http::SslContextPtr context_;
  UniqueFd socket_;
  http::SslPtr ssl_;
  bool ok_ = false;
};

class CarrierLab : public ::testing::Test {
 protected:
  CarrierLab();
  ~CarrierLab() override;
  void SetUp() override { start(); }
  // Made anew, as `parts` now says.
  void start();

  // A client's end whose other end is the carrier's; called beside the loop.
  UniqueFd guest(uint16_t port = 80);
  UniqueFd proxy_client();
  TlsPeer tls_guest(const std::string& name = "a.example", const std::string& alpn = "");
  UniqueFd origin() { return accepted(origin_listener_); }
  TlsPeer tls_origin(const std::string& protocol = "http/1.1");
  void beside(const std::function<void()>& other) { run_beside(loop_, other); }
  // Until all exchanges and connections have ended.
  void settle();
  std::string record() const;  // one line a crossing
  static ConnectionPlan plan(ConnectionPlan::Use use, const char* rule = "egress[0]");
  static Denial denial(int status, const char* code, const char* message);

  Loop loop_;
  ObedientGuard guard_;
  LoopbackDialer dialer_;
  std::unique_ptr<CertificateAuthority> authority_, origins_authority_;
  std::unique_ptr<OriginTls> origin_tls_;
  std::vector<Crossing> crossings_;
  std::unique_ptr<RawConnections> raw_;
  std::function<bool(uint64_t)> spend_;
  std::chrono::milliseconds first_bytes_ = Carrier::kFirstBytes, idle_{std::chrono::seconds(120)};
  RelayTimes times_;
  size_t most_held_ = Carrier::kMostHeld;
  std::unique_ptr<Carrier> carrier_;

 private:
  UniqueFd origin_listener_, guest_listener_, tls_listener_, proxy_listener_;
  std::vector<Loop::Handle> watches_;
};

}  // namespace firestop::egress::testing
