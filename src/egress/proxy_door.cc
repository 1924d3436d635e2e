#include "egress/proxy_door.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "egress/codes.h"
#include "egress/doors.h"

namespace firestop::egress {

ProxyDoor::ProxyDoor(Loop& loop, UniqueFd listener, uint32_t connections, Carrier& carrier, Recorder record)
    : loop_(loop),
      listener_(std::move(listener)),
      reserve_(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 3)),
      connections_(connections),
      carrier_(carrier),
      record_(std::move(record)) {
  watch_ = loop_.watch(listener_.get(), Loop::kReadable, [this](int) { accept_some(); });
}

ProxyDoor::~ProxyDoor() = default;

void ProxyDoor::accept_some() {
  for (int i = 0; i < kMostInOneTurn && accept_one(); ++i) {
  }
}

bool ProxyDoor::accept_one() {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  // SAFETY: the kernel writes an address of at most `size` bytes, whatever its kind.
  UniqueFd socket(
      ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) {
      return errno == ECONNABORTED || errno == EINTR;
    }
    out_of_descriptors();
    return false;
  }
  const int yes = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // SAFETY: IPv4 and IPv6 have the port at the same place.
  const uint16_t source_port = ntohs(reinterpret_cast<const sockaddr_in*>(&from)->sin_port);
  if (*open_ >= connections_) {
    tell("too many connections at once", source_port);
    reset_connection(std::move(socket));
    return true;
  }
  ++*open_;
  auto place = std::shared_ptr<void>(nullptr, [open = open_](void*) { --*open; });
  carrier_.carry_as_proxy({std::move(socket), {}, source_port, std::move(place)});
  return true;
}

// The client that knocks is told at once, with the descriptor that was kept for it; then others may end
// first. Otherwise the listener would be ready for ever, and nobody would be served.
void ProxyDoor::out_of_descriptors() {
  reserve_.reset();
  reset_connection(UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  reserve_.reset(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 3));
  tell("no descriptor is left for another connection", 0);
  watch_->set_events(0);
  retry_ = loop_.once(std::chrono::milliseconds(100), [this] { watch_->set_events(Loop::kReadable); });
}

void ProxyDoor::tell(const char* detail, uint16_t source_port) {
  Crossing crossing;
  crossing.kind = Crossing::Kind::kConnection;
  crossing.verdict = "denied";
  crossing.code = codes::kLimitConnections;
  crossing.scheme = "tcp";
  crossing.detail = detail;
  crossing.source_port = source_port;
  record_(crossing);
}

}  // namespace firestop::egress
