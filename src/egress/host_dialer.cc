#include "egress/host_dialer.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "egress/codes.h"
#include "egress/connect_race.h"

namespace firestop::egress {
namespace {

using codec::Address;
using codec::Reach;

Denial denial(const Route& route, int status, const char* code, std::string message, std::string what_to_do) {
  Denial out;
  out.status = status;
  out.code = code;
  out.rule = route.rule;
  out.message = std::move(message);
  out.what_to_do = std::move(what_to_do);
  return out;
}

Denial unreachable(const Route& route, int status, std::string message) {
  return denial(route, status, codes::kUnreachable, std::move(message),
                "try again later; whether it can be reached from the host shows there");
}

enum class Named { kByName, kByAddress };

bool may_dial(const Route& route, const Address& address, Named named) {
  const Reach reach = codec::range_of(address).reach;
  if (reach == Reach::kPublic) return true;
  return route.private_addresses && (named == Named::kByAddress || reach == Reach::kPrivate);
}

Denial not_public(const Route& route, const Address& address) {
  const bool could = codec::range_of(address).reach == Reach::kPrivate;
  return denial(route, 403, codes::kPrivateAddress,
                route.to.host + " leads to " + address.to_string() + ", " + codec::range_of(address).what,
                could ? "the rule may say private: true, if that is what is meant"
                      : "the operator may give an address with --connect-to, if that is what is meant");
}

struct Endpoint {
  Address address;
  uint16_t port = 0;
};
std::optional<Endpoint> read_endpoint(std::string_view text) {
  const auto authority = http::parse_authority(text, 0);
  const auto address = authority ? Address::parse(authority->host) : std::nullopt;
  if (!address || authority->port == 0) return std::nullopt;
  return Endpoint{*address, authority->port};
}

}  // namespace

// Look-up, race, and for a proxy its answer to CONNECT: one after the other, each with its time.
class HostDialer::Dialling final : public Attempt {
 public:
  Dialling(HostDialer& dialer, const Route& route, Done done, Failed failed)
      : dialer_(dialer), route_(route), done_(std::move(done)), failed_(std::move(failed)) {
    start();
  }

 private:
  void start() {
    if (!route_.connect_to.empty()) {
      const auto endpoint = read_endpoint(route_.connect_to);
      if (!endpoint) return later(unreachable(route_, 502, route_.connect_to + " is not ADDRESS:PORT"));
      return race({endpoint->address}, endpoint->port);
    }
    proxy_ = dialer_.proxy_.for_route(route_);
    const Authority& to = proxy_ ? proxy_->at : route_.to;
    if (const auto address = Address::parse(route_.to.host);
        address && !may_dial(route_, *address, Named::kByAddress))
      return later(not_public(route_, *address));
    // Resolvers read it as an address, which nobody judged.
    if (codec::odd_address(route_.to.host))
      return later(denial(route_, 403, codes::kBadRequest,
                          route_.to.host + " is an odd way to write an address",
                          "write it as four decimal numbers"));
    if (const auto address = Address::parse(to.host)) return race({*address}, to.port);
    look_up(to);
  }

  void look_up(const Authority& to) {
    limit(dialer_.times_.resolve, [this] {
      fail(denial(route_, 504, codes::kUnresolved, "the host's resolver does not answer", "try again later"));
    });
    lookup_ = dialer_.resolver_.look_up(to.host, [this, to](const Result<std::vector<Address>>& answer) {
      lookup_.reset();
      if (!answer)
        return fail(denial(route_, 502, codes::kUnresolved, answer.error().message,
                           "see whether the name is spelled right, and whether the host can resolve it"));
      resolved(*answer, to.port);
    });
  }

  void resolved(const std::vector<Address>& answer, uint16_t port) {
    std::vector<Address> good;
    for (const Address& address : answer)
      if (proxy_ || may_dial(route_, address, Named::kByName)) good.push_back(address);
    if (good.empty() && answer.empty())
      return fail(denial(route_, 502, codes::kUnresolved, route_.to.host + " has no address", ""));
    if (good.empty()) return fail(not_public(route_, answer.front()));
    race(by_turns(good, kMostTried), port);
  }

  void race(std::vector<Address> addresses, uint16_t port) {
    limit(dialer_.times_.connect, [this] {
      fail(unreachable(route_, 504,
                       route_.to.host + " does not answer: no connection within " +
                           std::to_string(dialer_.times_.connect.count()) + " ms"));
    });
    race_.emplace(
        dialer_.loop_, std::move(addresses), port, dialer_.times_.stagger,
        [this, port](UniqueFd socket, const Address& address) {
          socket_ = std::move(socket);
          address_ = address.with_port(port);
          if (!proxy_) return finish();
          ask_proxy();
        },
        [this](const std::string& why) {
          const std::string whom =
              proxy_ ? "the host's proxy cannot be reached" : route_.to.host + " cannot be reached";
          fail(unreachable(route_, 502, whom + ": " + why));
        });
  }

  void ask_proxy() {
    limit(dialer_.times_.proxy,
          [this] { fail(unreachable(route_, 504, "the host's proxy does not answer")); });
    const auto address = Address::parse(route_.to.host);
    const std::string to =
        address ? address->with_port(route_.to.port) : route_.to.host + ":" + std::to_string(route_.to.port);
    unsent_ = "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n";
    if (!proxy_->authorization.empty()) unsent_ += "Proxy-Authorization: " + proxy_->authorization + "\r\n";
    unsent_ += "\r\n";
    watch_ = dialer_.loop_.watch(socket_.get(), Loop::kWritable, [this](int) {
      if (unsent_.empty()) return read_proxy();
      const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) proxy_gone();
        return;
      }
      unsent_.erase(0, static_cast<size_t>(sent));
      if (unsent_.empty()) watch_->set_events(Loop::kReadable);
    });
  }

  // Takes the head and not a byte more: what follows is the origin's.
  void read_proxy() {
    std::array<char, 4096> buffer;
    const ssize_t seen = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_PEEK);
    if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (seen <= 0) return proxy_gone();
    const size_t before = head_.size();
    head_.append(buffer.data(), static_cast<size_t>(seen));
    const size_t end = head_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
    if (end != std::string::npos) head_.resize(end + 4);
    if (::recv(socket_.get(), buffer.data(), head_.size() - before, 0) < 0) return proxy_gone();
    if (end != std::string::npos) return judge_proxy();
    if (head_.size() > kMostProxyHead)
      fail(unreachable(route_, 502, "the host's proxy answers with more than a head may have"));
  }

  void judge_proxy() {
    const std::string_view line = std::string_view(head_).substr(0, head_.find("\r\n"));
    const std::string_view status = line.starts_with("HTTP/1.") && line.size() >= 12 && line[8] == ' '
                                        ? line.substr(9, 3)
                                        : std::string_view();
    const bool number =
        status.size() == 3 && status.find_first_not_of("0123456789") == std::string_view::npos;
    if (number && status[0] == '2') return finish();
    fail(unreachable(route_, 502,
                     !number ? "the host's proxy does not speak HTTP"
                     : status == "407"
                         ? "the host's proxy wants another login (407)"
                         : "the host's proxy refuses to connect (" + std::string(status) + ")"));
  }

  void proxy_gone() { fail(unreachable(route_, 502, "the host's proxy closed the connection")); }

  void limit(std::chrono::milliseconds time, std::function<void()> over) {
    timer_ = dialer_.loop_.once(time, std::move(over));
  }
  void later(Denial why) {
    limit(std::chrono::milliseconds(0), [this, why = std::move(why)] { fail(why); });
  }
  void stop() {
    timer_.reset();
    lookup_.reset();
    race_.reset();
    watch_.reset();
  }
  // Both may destroy this.
  void fail(Denial why) {
    stop();
    const Failed failed = std::move(failed_);
    failed(std::move(why));
  }
  void finish() {
    stop();
    const Done done = std::move(done_);
    done({std::move(socket_), address_ + (proxy_ ? " (the host's proxy)" : "")});
  }

  HostDialer& dialer_;
  const Route route_;
  Done done_;
  Failed failed_;
  const ProxyServer* proxy_ = nullptr;
  std::unique_ptr<Resolver::Lookup> lookup_;
  std::optional<ConnectRace> race_;
  UniqueFd socket_;
  std::string address_, unsent_, head_;
  Loop::Handle watch_, timer_;
};

std::unique_ptr<Dialer::Attempt> HostDialer::dial(const Route& route, Done done, Failed failed) {
  return std::make_unique<Dialling>(*this, route, std::move(done), std::move(failed));
}

}  // namespace firestop::egress
