#include "egress/connect_race.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace firestop::egress {
namespace {

using codec::Address;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

SocketAddress socket_address(const Address& address, uint16_t port) {
  SocketAddress out;
  if (address.is_v4()) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(out.storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    v4.sin_addr.s_addr = htonl(address.number());
    out.size = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&v6.sin6_addr, address.bytes().data(), address.bytes().size());
    out.size = sizeof v6;
  }
  return out;
}

}  // namespace

std::vector<Address> by_turns(const std::vector<Address>& addresses, size_t most) {
  std::vector<Address> out;
  std::vector<bool> taken(addresses.size(), false);
  bool v4 = !addresses.empty() && addresses.front().is_v4();
  while (out.size() < std::min(most, addresses.size())) {
    size_t pick = addresses.size();
    for (size_t i = addresses.size(); i-- > 0;)
      if (!taken[i] && addresses[i].is_v4() == v4) pick = i;
    if (pick < addresses.size()) {
      taken[pick] = true;
      out.push_back(addresses[pick]);
    }
    v4 = !v4;
  }
  return out;
}

ConnectRace::ConnectRace(Loop& loop, std::vector<Address> addresses, uint16_t port,
                         std::chrono::milliseconds stagger, Won won, Lost lost)
    : loop_(loop),
      addresses_(std::move(addresses)),
      port_(port),
      stagger_(stagger),
      won_(std::move(won)),
      lost_(std::move(lost)) {
  timer_ = loop_.once(std::chrono::milliseconds(0), [this] { try_next(); });
}

void ConnectRace::try_next() {
  while (next_ < addresses_.size()) {
    if (!start(addresses_[next_++])) continue;
    timer_ = loop_.once(stagger_, [this] { try_next(); });
    return;
  }
  timer_.reset();
  if (!tries_.empty()) return;
  const Lost lost = std::move(lost_);
  lost(std::string(why_));
}

bool ConnectRace::start(const Address& address) {
  const auto failed = [&] {
    why_ = address.with_port(port_) + ": " + std::strerror(errno);
    return false;
  };
  UniqueFd socket(::socket(address.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                           IPPROTO_TCP));
  if (!socket.valid()) return failed();
  const int on = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const SocketAddress to = socket_address(address, port_);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 &&
      errno != EINPROGRESS)
    return failed();
  const auto one = tries_.insert(tries_.end(), Try{address, std::move(socket), nullptr});
  one->watch = loop_.watch(one->socket.get(), Loop::kWritable, [this, one](int) { settled(one); });
  return true;
}

void ConnectRace::settled(std::list<Try>::iterator one) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(one->socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    why_ = one->address.with_port(port_) + ": " + std::strerror(error);
    tries_.erase(one);
    try_next();
    return;
  }
  one->watch.reset();
  UniqueFd socket = std::move(one->socket);
  const Address address = one->address;
  tries_.clear();
  timer_.reset();
  const Won won = std::move(won_);
  won(std::move(socket), address);
}

}  // namespace firestop::egress
