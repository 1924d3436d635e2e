// The carrier behind one TLS listener, towards one origin, with a header swapped in every request: what
// `run` of this folder measures beside other proxies. Arguments: the port to listen at, the origin's port,
// the file of the origin's certificate, the file to write the authority's certificate to.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "egress/carrier.h"

using namespace firestop;
using namespace firestop::egress;

namespace {

constexpr const char* kHost = "api.example.com";

class SwappingExchange final : public Exchange {
 public:
  explicit SwappingExchange(const Origin& origin) {
    route_.to = origin.asked;
    route_.tls = true;
    route_.rule = "egress[0]";
  }
  void admit(http::RequestHead& head, std::function<void(std::optional<Denial>)> done) override {
    for (auto& header : head.headers) {
      if (http::same_name(header.name, "Authorization"))
        header.value = "Bearer the-real-value-of-this-credential";
    }
    done(std::nullopt);
  }
  const Route& route() const override { return route_; }
  Filter* request_body() override { return nullptr; }
  std::optional<Denial> request_trailers(http::Headers&) override { return std::nullopt; }
  std::optional<Denial> answer(http::ResponseHead&) override { return std::nullopt; }
  Filter* response_body() override { return nullptr; }
  std::optional<Denial> answer_trailers(http::Headers&) override { return std::nullopt; }
  Filter* websocket_out() override { return nullptr; }
  Filter* websocket_in() override { return nullptr; }

 private:
  Route route_;
};

class OpenGuard final : public Guard {
 public:
  std::optional<Denial> name(std::string_view) override { return std::nullopt; }
  ConnectionPlan connection(const Authority&) override {
    ConnectionPlan out;
    out.use = ConnectionPlan::Use::kHttp;
    return out;
  }
  std::unique_ptr<Exchange> exchange(const Origin& origin) override {
    return std::make_unique<SwappingExchange>(origin);
  }
  std::optional<Denial> alarm_in_server_name(std::string_view) override { return std::nullopt; }
  std::optional<Denial> alarm_in(const http::RequestHead&) override { return std::nullopt; }
};

sockaddr_in loopback(uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

class LoopbackDialer final : public Dialer {
 public:
  LoopbackDialer(Loop& loop, uint16_t port) : loop_(loop), port_(port) {}
  class Dialling final : public Attempt {
   public:
    explicit Dialling(Loop::Handle soon) : soon_(std::move(soon)) {}

   private:
    Loop::Handle soon_;
  };
  std::unique_ptr<Attempt> dial(const Route&, Done done, Failed) override {
    return std::make_unique<Dialling>(
        loop_.once(std::chrono::milliseconds(0), [this, done = std::move(done)] {
          UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
          const sockaddr_in to = loopback(port_);
          const int yes = 1;
          ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
          ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
          done({std::move(socket), "127.0.0.1"});
        }));
  }

 private:
  Loop& loop_;
  const uint16_t port_;
};

Result<int> serve(uint16_t port, uint16_t origin, const char* origin_ca, const char* authority_file) {
  Loop loop;
  OpenGuard guard;
  LoopbackDialer dialer(loop, origin);
  TRY_ASSIGN(const auto authority, CertificateAuthority::make({.hosts = {kHost}}));
  TRY_ASSIGN(const std::string trusted, read_file(origin_ca));
  TRY_ASSIGN(const auto tls, OriginTls::make(trusted, ""));
  TRY(write_file_atomic(authority_file, authority->certificate(), 0644));
  const Recorder record = [](const Crossing&) {};
  RawConnections raw(loop, dialer, record);
  Carrier carrier(loop, {.guard = guard,
                         .dialer = dialer,
                         .authority = *authority,
                         .origin_tls = *tls,
                         .raw = raw,
                         .record = record,
                         .spend = {}});
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in at = loopback(port);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listener.get(), 1024) != 0) {
    return fail_errno("bench.listen", "cannot listen");
  }
  const auto watch = loop.watch(listener.get(), Loop::kReadable, [&](int) {
    for (int i = 0; i < 64; ++i) {
      UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) return;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      carrier.carry({std::move(socket), {kHost, 443}, 0, nullptr});
    }
  });
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto port = static_cast<uint16_t>(std::strtoul(argv[1], nullptr, 10));
  const auto origin = static_cast<uint16_t>(std::strtoul(argv[2], nullptr, 10));
  const auto done = serve(port, origin, argv[3], argv[4]);
  if (!done) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done ? *done : 1;
}
