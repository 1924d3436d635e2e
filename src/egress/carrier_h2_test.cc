// HTTP/2 on either side, both sides, and HTTP/1.1 on the other.
#include <fcntl.h>
#include <netinet/in.h>

#include <deque>
#include <list>

#include "egress/alpn.h"
#include "egress/testing/carrier_lab.h"
#include "http/h1_client.h"
#include "http/h1_server.h"
#include "http/h2_client.h"
#include "http/h2_server.h"
#include "http/socket_stream.h"

namespace firestop::egress::testing {
namespace {

using http::Body;

struct Listener : http::StreamReceiver {
  void on_response(http::ResponseHead head) override { responses.push_back(std::move(head)); }
  void on_data(std::string_view bytes) override {
    data += bytes;
    if (stream) stream->consumed(bytes.size());
    if (at_data) at_data();
  }
  void on_end(http::Headers given) override {
    trailers = std::move(given);
    ended = true;
    if (at_end) at_end();
  }
  void on_abort(const std::string& why) override { aborted = why; }
  void on_writable() override {}
  std::deque<http::ResponseHead> responses;
  std::string data, aborted;
  http::Headers trailers;
  bool ended = false;
  http::Stream* stream = nullptr;
  std::function<void()> at_data, at_end;
};

struct Taken {
  http::RequestHead head;
  std::unique_ptr<http::ServerStream> stream;
  Listener listener;
};

// Guest and origin are connections of ours on the carrier's own loop.
class CarrierH2 : public CarrierLab, public http::RequestHandler {
 protected:
  enum class Speaks { kH1, kH2 };
  void SetUp() override {
    CarrierLab::SetUp();
    listener_ = bound(SOCK_STREAM);
    dialer_.port = port_of(listener_);
    watch_ = loop_.watch(listener_.get(), Loop::kReadable, [this](int) { take_one(); });
  }
  void TearDown() override {
    streams_.clear();
    taken_.clear();
    h1_guest_.reset();
    h2_guest_.reset();
    carrier_.reset();
    h1_origins_.clear();
    h2_origins_.clear();
    shaking_.clear();
  }
  void take_one() {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    auto bytes = std::make_unique<http::SocketStream>(loop_, std::move(socket));
    if (plain_origin_) return serve(std::move(bytes), "h2");
    auto ssl =
        origins_authority_->accept_tls("a.example", {origin_speaks_ == Speaks::kH2 ? "h2" : "http/1.1"});
    ASSERT_TRUE(ssl);
    shaking_.push_back(std::make_unique<http::TlsStream>(loop_, std::move(bytes), std::move(*ssl)));
    auto& tls = shaking_.back();
    tls->handshake([this, &tls](Result<void> result) {
      ASSERT_TRUE(result) << result.error().message;
      const std::string protocol = tls->protocol();
      serve(std::move(tls), protocol);
    });
  }
  void serve(std::unique_ptr<http::ByteStream> bytes, const std::string& protocol) {
    if (protocol == "h2") {
      h2_origins_.push_back(
          std::make_unique<http::H2Server>(loop_, std::move(bytes), *this, [](const std::string&) {}));
    } else {
      h1_origins_.push_back(std::make_unique<http::H1Server>(
          loop_, std::move(bytes), *this, http::H1Server::Options{}, [](const std::string&) {}));
    }
  }
  // A guest with TLS that speaks so; waits for its handshake.
  void connect(Speaks speaks) {
    UniqueFd socket = guest(443);
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    context_ = http::make_tls_context(TLS_client_method());
    http::SslPtr ssl(SSL_new(context_.get()));
    SSL_set_connect_state(ssl.get());
    SSL_set_tlsext_host_name(ssl.get(), "a.example");
    const std::string wire = alpn_wire({speaks == Speaks::kH2 ? "h2" : "http/1.1"});
    SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                        static_cast<unsigned>(wire.size()));
    auto tls = std::make_unique<http::TlsStream>(
        loop_, std::make_unique<http::SocketStream>(loop_, std::move(socket)), std::move(ssl));
    bool done = false;
    tls->handshake([&](Result<void> result) {
      EXPECT_TRUE(result);
      done = true;
    });
    ASSERT_TRUE(run_until(loop_, [&] { return done; }));
    const auto closed = [](const std::string&) {};
    if (speaks == Speaks::kH2) {
      h2_guest_ = std::make_unique<http::H2Client>(loop_, std::move(tls), closed, [] {});
    } else {
      h1_guest_ = std::make_unique<http::H1Client>(loop_, std::move(tls), closed, [] {});
    }
  }
  http::ClientStream& ask(const http::RequestHead& head, Listener& listener) {
    auto stream = h2_guest_ ? h2_guest_->open(head, listener) : h1_guest_->open(head, listener);
    EXPECT_TRUE(stream);
    listener.stream = stream->get();
    streams_.push_back(std::move(*stream));
    return *streams_.back();
  }
  void on_request(http::RequestHead head, std::unique_ptr<http::ServerStream> stream) override {
    auto taken = std::make_unique<Taken>();
    taken->head = std::move(head);
    taken->stream = std::move(stream);
    taken->listener.stream = taken->stream.get();
    taken->stream->set_receiver(&taken->listener);
    taken_.push_back(std::move(taken));
    if (at_request_) at_request_(*taken_.back());
  }
  static http::RequestHead request(const std::string& target, Body body = {}) {
    return {body.kind == Body::Kind::kNone ? "GET" : "POST",
            "https",
            {"a.example", 443},
            target,
            {{"te", "trailers"}},
            "",
            false,
            body};
  }
  // Sends back what came, and its size behind it.
  static void echo(Taken& taken) {
    taken.listener.at_end = [&taken] {
      taken.stream->send_response(
          {200, {{"Set-Cookie", "a"}, {"Set-Cookie", "b"}}, {Body::Kind::kUnknown, 0}});
      taken.stream->send_data(taken.head.target + " " + taken.listener.data);
      taken.stream->send_end({{"grpc-status", "0"}});
    };
  }

  UniqueFd listener_;
  Loop::Handle watch_;
  http::SslContextPtr context_;
  Speaks origin_speaks_ = Speaks::kH2;
  bool plain_origin_ = false;
  std::list<std::unique_ptr<http::TlsStream>> shaking_;  // handshakes refer into it
  std::vector<std::unique_ptr<http::H1Server>> h1_origins_;
  std::vector<std::unique_ptr<http::H2Server>> h2_origins_;
  std::unique_ptr<http::H1Client> h1_guest_;
  std::unique_ptr<http::H2Client> h2_guest_;
  std::vector<std::unique_ptr<http::ClientStream>> streams_;
  std::vector<std::unique_ptr<Taken>> taken_;
  std::function<void(Taken&)> at_request_;
};

TEST_F(CarrierH2, EitherSideMaySpeakEither) {
  at_request_ = echo;
  for (const Speaks guest : {Speaks::kH1, Speaks::kH2}) {
    for (const Speaks origin : {Speaks::kH1, Speaks::kH2}) {
      start();
      crossings_.clear();
      h1_guest_.reset();
      h2_guest_.reset();
      origin_speaks_ = origin;
      connect(guest);
      Listener listener;
      auto& stream = ask(request("/x?y=%2F", {Body::Kind::kUnknown, 0}), listener);
      stream.send_data("hello ");
      stream.send_data("there");
      stream.send_end({});
      ASSERT_TRUE(run_until(loop_, [&] { return listener.ended && !crossings_.empty(); }));
      EXPECT_EQ(listener.data, "/x?y=%2F hello there");
      ASSERT_EQ(listener.responses.size(), 1u);
      EXPECT_EQ(listener.responses[0].headers.size(), 2u) << "both cookies";
      ASSERT_EQ(listener.trailers.size(), 1u);
      EXPECT_EQ(listener.trailers[0].value, "0");
      EXPECT_EQ(record(), "request allowed https://a.example:443 POST /x 200\n");
      streams_.clear();
    }
  }
}

TEST_F(CarrierH2, ManyRequestsShareOneConnectionToTheOrigin) {
  at_request_ = echo;
  connect(Speaks::kH2);
  std::vector<std::unique_ptr<Listener>> listeners;
  for (int i = 0; i < 40; ++i) {
    listeners.push_back(std::make_unique<Listener>());
    ask(request("/" + std::to_string(i)), *listeners.back());
  }
  ASSERT_TRUE(run_until(loop_, [&] { return crossings_.size() == 40; }));
  for (size_t i = 0; i < listeners.size(); ++i) EXPECT_EQ(listeners[i]->data, "/" + std::to_string(i) + " ");
  EXPECT_LE(dialer_.dialled, 4) << "before it is known what the origin speaks";
  const int before = dialer_.dialled;
  Listener more;
  ask(request("/more"), more);
  ASSERT_TRUE(run_until(loop_, [&] { return more.ended; }));
  EXPECT_EQ(dialer_.dialled, before) << "the connection is known now";
}

// Both sides talk and listen at once, as a call of gRPC may.
TEST_F(CarrierH2, AStreamThatGoesBothWaysAtOnce) {
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({200, {}, {Body::Kind::kUnknown, 0}});
    taken.listener.at_data = [&taken] { taken.stream->send_data(std::exchange(taken.listener.data, {})); };
    taken.listener.at_end = [&taken] { taken.stream->send_end({{"grpc-status", "0"}}); };
  };
  connect(Speaks::kH2);
  Listener listener;
  auto& stream = ask(request("/chat", {Body::Kind::kUnknown, 0}), listener);
  for (int i = 0; i < 5; ++i) {
    stream.send_data("m" + std::to_string(i));
    ASSERT_TRUE(run_until(loop_, [&] { return listener.data.ends_with("m" + std::to_string(i)); })) << i;
    EXPECT_FALSE(listener.ended);
  }
  stream.send_end({});
  ASSERT_TRUE(run_until(loop_, [&] { return listener.ended && !crossings_.empty(); }));
  EXPECT_EQ(listener.data, "m0m1m2m3m4");
}

TEST_F(CarrierH2, ADenialIsAnAnswerAndTheConnectionGoesOn) {
  at_request_ = echo;
  guard_.admit = [](http::RequestHead& head, const Origin&) -> std::optional<Denial> {
    if (head.target == "/no") return denial(403, "egress.path", "not that path");
    return std::nullopt;
  };
  connect(Speaks::kH2);
  Listener denied, allowed;
  auto& stream = ask(request("/no", {Body::Kind::kUnknown, 0}), denied);
  stream.send_data("body");
  stream.send_end({});
  ask(request("/yes"), allowed);
  ASSERT_TRUE(run_until(loop_, [&] { return denied.ended && allowed.ended && crossings_.size() == 2; }));
  EXPECT_EQ(denied.responses.at(0).status, 403);
  EXPECT_EQ(allowed.data, "/yes ");
}

TEST_F(CarrierH2, AGuestThatGivesUpEndsItAtTheOrigin) {
  at_request_ = [](Taken& taken) { taken.stream->send_response({200, {}, {Body::Kind::kUnknown, 0}}); };
  connect(Speaks::kH2);
  Listener listener;
  ask(request("/slow"), listener);
  ASSERT_TRUE(run_until(loop_, [&] { return !listener.responses.empty(); }));
  streams_.clear();
  ASSERT_TRUE(run_until(loop_, [&] { return !taken_.at(0)->listener.aborted.empty(); }));
  EXPECT_EQ(record(), "request failed https://a.example:443 GET /slow 200\n");
}

TEST_F(CarrierH2, AnIdleConnectionEnds) {
  idle_ = std::chrono::milliseconds(80);
  start();
  at_request_ = echo;
  connect(Speaks::kH2);
  Listener listener;
  ask(request("/x"), listener);
  ASSERT_TRUE(run_until(loop_, [&] { return listener.ended; }));
  EXPECT_TRUE(run_until(loop_, [&] { return carrier_->connections() == 0; }));
}

// What gRPC does on an insecure channel.
TEST_F(CarrierH2, Http2WithoutTlsAtOnce) {
  at_request_ = echo;
  plain_origin_ = true;
  UniqueFd socket = guest(80);
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  h2_guest_ = std::make_unique<http::H2Client>(
      loop_, std::make_unique<http::SocketStream>(loop_, std::move(socket)), [](const std::string&) {},
      [] {});
  Listener listener;
  http::RequestHead head = request("/plain");
  head.scheme = "http";
  head.authority.port = 80;
  ask(head, listener);
  ASSERT_TRUE(run_until(loop_, [&] { return listener.ended && !crossings_.empty(); }));
  EXPECT_EQ(listener.data, "/plain ");
  EXPECT_EQ(record(), "request allowed http://a.example:80 GET /plain 200\n");
}

}  // namespace
}  // namespace firestop::egress::testing
