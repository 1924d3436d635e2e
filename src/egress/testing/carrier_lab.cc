#include "egress/testing/carrier_lab.h"

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include "egress/alpn.h"

namespace firestop::egress::testing {

class ObedientGuard::Obedient final : public Exchange {
 public:
  Obedient(ObedientGuard& guard, Origin origin) : guard_(guard), origin_(std::move(origin)) {
    route_.to = origin_.asked;
    route_.tls = origin_.tls;
    route_.rule = "egress[0]";
  }
  void admit(http::RequestHead& head, std::function<void(std::optional<Denial>)> done) override {
    guard_.heads.push_back(head);
    auto denied = guard_.admit ? guard_.admit(head, origin_) : std::nullopt;
    if (guard_.request_body) request_ = guard_.request_body();
    if (guard_.websocket_out) out_ = guard_.websocket_out();
    done(std::move(denied));
  }
  const Route& route() const override { return route_; }
  Filter* request_body() override { return request_.get(); }
  std::optional<Denial> request_trailers(http::Headers&) override { return std::nullopt; }
  std::optional<Denial> answer(http::ResponseHead& head) override {
    if (guard_.response_body) response_ = guard_.response_body();
    if (guard_.websocket_in) in_ = guard_.websocket_in();
    return guard_.answer ? guard_.answer(head) : std::nullopt;
  }
  Filter* response_body() override { return response_.get(); }
  std::optional<Denial> answer_trailers(http::Headers&) override { return std::nullopt; }
  Filter* websocket_out() override { return out_.get(); }
  Filter* websocket_in() override { return in_.get(); }

 private:
  ObedientGuard& guard_;
  Origin origin_;
  Route route_;
  std::unique_ptr<Filter> request_, response_, out_, in_;
};

ConnectionPlan ObedientGuard::connection(const Authority& to) {
  if (plan) return plan(to);
  ConnectionPlan out;
  out.use = ConnectionPlan::Use::kHttp;
  return out;
}

std::unique_ptr<Exchange> ObedientGuard::exchange(const Origin& origin) {
  origins.push_back(origin);
  return std::make_unique<Obedient>(*this, origin);
}

std::optional<Denial> ObedientGuard::alarm_in_server_name(std::string_view name) {
  if (name.find(placeholder) == std::string_view::npos) return std::nullopt;
  Denial out;
  out.code = "credential.elsewhere";
  out.credential = "model";
  out.alarm = true;
  return out;
}

std::optional<Denial> ObedientGuard::alarm_in(const http::RequestHead& head) {
  std::string all = head.authority.host + head.target;
  for (const auto& header : head.headers) all += header.name + header.value;
  return alarm_in_server_name(all);
}

class LoopbackDialer::Dialling final : public Attempt {
 public:
  Dialling(LoopbackDialer& dialer, Done done, Failed failed) {
    soon_ = dialer.loop_.once(
        std::chrono::milliseconds(1), [&dialer, done = std::move(done), failed = std::move(failed)] {
          if (dialer.failure) return failed(*dialer.failure);
          UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
          sockaddr_in to{};
          to.sin_family = AF_INET;
          to.sin_port = htons(dialer.port);
          to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
          ::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
          done({std::move(socket), "127.0.0.1:" + std::to_string(dialer.port)});
        });
  }

 private:
  Loop::Handle soon_;
};

std::unique_ptr<Dialer::Attempt> LoopbackDialer::dial(const Route&, Done done, Failed failed) {
  ++dialled;
  return std::make_unique<Dialling>(*this, std::move(done), std::move(failed));
}

TlsPeer TlsPeer::client(UniqueFd socket, const std::string& trusted_pem, const std::string& name,
                        const std::string& alpn) {
  TlsPeer peer;
  peer.context_ = http::make_tls_context(TLS_client_method());
  BIO* bio = BIO_new_mem_buf(trusted_pem.data(), static_cast<int>(trusted_pem.size()));
  if (X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(peer.context_.get()), certificate);
    X509_free(certificate);
  }
  BIO_free(bio);
  SSL_CTX_set_verify(peer.context_.get(), SSL_VERIFY_PEER, nullptr);
  peer.ssl_.reset(SSL_new(peer.context_.get()));
  if (!name.empty()) {
    SSL_set_tlsext_host_name(peer.ssl_.get(), name.c_str());
    SSL_set1_host(peer.ssl_.get(), name.c_str());
  }
  if (!alpn.empty()) {
    const std::string wire = alpn_wire({alpn});
    SSL_set_alpn_protos(peer.ssl_.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                        static_cast<unsigned>(wire.size()));
  }
  peer.socket_ = std::move(socket);
  SSL_set_fd(peer.ssl_.get(), peer.socket_.get());
  peer.ok_ = SSL_connect(peer.ssl_.get()) == 1;
  ERR_clear_error();
  return peer;
}

TlsPeer TlsPeer::server(UniqueFd socket, http::SslPtr ssl) {
  TlsPeer peer;
  peer.socket_ = std::move(socket);
  peer.ssl_ = std::move(ssl);
  SSL_set_fd(peer.ssl_.get(), peer.socket_.get());
  peer.ok_ = SSL_accept(peer.ssl_.get()) == 1;
  ERR_clear_error();
  return peer;
}

void TlsPeer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t sent = 0;
    ASSERT_EQ(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent), 1);
    bytes.remove_prefix(sent);
  }
}

std::string TlsPeer::receive(size_t most) {
  std::string out(most, '\0');
  size_t got = 0;
  if (SSL_read_ex(ssl_.get(), out.data(), out.size(), &got) != 1) got = 0;
  ERR_clear_error();
  out.resize(got);
  return out;
}

std::string TlsPeer::receive_until(std::string_view end) {
  std::string out;
  while (!out.ends_with(end)) {
    const std::string more = receive(1);
    if (more.empty()) break;
    out += more;
  }
  return out;
}

std::string TlsPeer::receive_exactly(size_t size) {
  std::string out;
  while (out.size() < size) {
    const std::string more = receive(size - out.size());
    if (more.empty()) break;
    out += more;
  }
  return out;
}

std::string TlsPeer::receive_all() {
  std::string out;
  for (std::string more; !(more = receive(65536)).empty();) out += more;
  return out;
}

std::string TlsPeer::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {name, name + size};
}

CarrierLab::CarrierLab() : dialer_(loop_) {
  authority_ = std::move(*CertificateAuthority::make({.hosts = {"a.example", "b.example"}}));
  origins_authority_ = std::move(*CertificateAuthority::make({.hosts = {"a.example", "b.example"}}));
  origin_tls_ = std::move(*OriginTls::make(origins_authority_->certificate(), ""));
  origin_listener_ = bound(SOCK_STREAM);
  guest_listener_ = bound(SOCK_STREAM);
  tls_listener_ = bound(SOCK_STREAM);
  proxy_listener_ = bound(SOCK_STREAM);
  for (const UniqueFd* one : {&origin_listener_, &guest_listener_}) ::listen(one->get(), 2048);
  dialer_.port = port_of(origin_listener_);
  const auto take = [this](UniqueFd& listener, const std::function<void(UniqueFd)>& use) {
    watches_.push_back(loop_.watch(listener.get(), Loop::kReadable, [&listener, use](int) {
      for (int i = 0; i < 64; ++i) {
        UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.valid()) return;
        use(std::move(socket));
      }
    }));
  };
  take(guest_listener_,
       [this](UniqueFd socket) { carrier_->carry({std::move(socket), {"a.example", 80}, 7, nullptr}); });
  take(tls_listener_,
       [this](UniqueFd socket) { carrier_->carry({std::move(socket), {"a.example", 443}, 7, nullptr}); });
  take(proxy_listener_,
       [this](UniqueFd socket) { carrier_->carry_as_proxy({std::move(socket), {}, 7, nullptr}); });
}

CarrierLab::~CarrierLab() {
  carrier_.reset();
  raw_.reset();
}

void CarrierLab::start() {
  carrier_.reset();
  const auto record = [this](const Crossing& crossing) { crossings_.push_back(crossing); };
  raw_ = std::make_unique<RawConnections>(loop_, dialer_, record);
  carrier_ = std::make_unique<Carrier>(loop_, Carrier::Parts{.guard = guard_,
                                                             .dialer = dialer_,
                                                             .authority = *authority_,
                                                             .origin_tls = *origin_tls_,
                                                             .raw = *raw_,
                                                             .record = record,
                                                             .spend = spend_,
                                                             .times = times_,
                                                             .most_held = most_held_,
                                                             .first_bytes = first_bytes_,
                                                             .idle = idle_});
}

UniqueFd CarrierLab::guest(uint16_t port) {
  return client(SOCK_STREAM, port_of(port == 80 ? guest_listener_ : tls_listener_));
}

UniqueFd CarrierLab::proxy_client() {
  return client(SOCK_STREAM, port_of(proxy_listener_));
}

TlsPeer CarrierLab::tls_guest(const std::string& name, const std::string& alpn) {
  return TlsPeer::client(guest(443), authority_->certificate(), name, alpn);
}

TlsPeer CarrierLab::tls_origin(const std::string& protocol) {
  auto ssl = origins_authority_->accept_tls("a.example", {protocol});
  EXPECT_TRUE(ssl);
  return TlsPeer::server(origin(), std::move(*ssl));
}

void CarrierLab::settle() {
  EXPECT_TRUE(
      run_until(loop_, [this] { return carrier_->exchanges() == 0 && carrier_->connections() == 0; }));
}

std::string CarrierLab::record() const {
  std::string out;
  for (const Crossing& c : crossings_) {
    const char* kinds[] = {"name", "connection", "request", "datagram", "alarm"};
    out += std::string(kinds[static_cast<int>(c.kind)]) + " " + c.verdict +
           (c.code.empty() ? "" : " " + c.code) + " " + c.scheme + "://" + c.host + ":" +
           std::to_string(c.port) + (c.method.empty() ? "" : " " + c.method + " " + c.path) +
           (c.status == 0 ? "" : " " + std::to_string(c.status)) + "\n";
  }
  return out;
}

ConnectionPlan CarrierLab::plan(ConnectionPlan::Use use, const char* rule) {
  ConnectionPlan out;
  out.use = use;
  out.route.to = {"a.example", 443};
  out.route.rule = rule;
  return out;
}

Denial CarrierLab::denial(int status, const char* code, const char* message) {
  Denial out;
  out.status = status;
  out.code = code;
  out.rule = "egress[0]";
  out.message = message;
  out.what_to_do = "ask for it";
  return out;
}

}  // namespace firestop::egress::testing
