#include "egress/doors.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>

#include "egress/seam.h"

namespace firestop::egress {
namespace {

int64_t now_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

Crossing denied(Crossing::Kind kind, const char* scheme, const char* code) {
  Crossing out;
  out.kind = kind;
  out.verdict = "denied";
  out.code = code;
  out.scheme = scheme;
  out.started_us = now_us();
  return out;
}

}  // namespace

void reset_connection(UniqueFd socket) {
  const linger at_once{1, 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Doors::Doors(Loop& loop, UniqueFd tcp, UniqueFd sink, Settings settings)
    : loop_(loop),
      tcp_(std::move(tcp)),
      sink_(std::move(sink)),
      reserve_(::fcntl(tcp_.get(), F_DUPFD_CLOEXEC, 3)),
      settings_(std::move(settings)) {
  const int yes = 1;
  (void)::setsockopt(sink_.get(), SOL_SOCKET, SO_RXQ_OVFL, &yes, sizeof yes);
  settings_.connections = std::min(settings_.connections, kMostConnections);
  tcp_watch_ = loop_.watch(tcp_.get(), Loop::kReadable, [this](int) { accept_some(); });
  sink_watch_ = loop_.watch(sink_.get(), Loop::kReadable, [this](int) { sink_some(); });
}

Doors::~Doors() = default;

void Doors::accept_some() {
  for (int i = 0; i < kMostInOneTurn && accept_one(); ++i) {
  }
}

bool Doors::accept_one() {
  Arrived arrived;
  arrived.socket.reset(::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!arrived.socket.valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) out_of_descriptors();
    return errno == ECONNABORTED || errno == EINTR;
  }
  const auto to = original_destination(arrived.socket.get());
  if (!to) return true;  // gone already
  arrived.address = to->address;
  arrived.source_port = to->source_port;
  arrived.to = {to->address, to->port};
  if (const std::string* name = settings_.name_of(to->address)) {
    arrived.to.host = *name;
    arrived.named = true;
  }
  if (*open_ >= settings_.connections) {
    Crossing over = denied(Crossing::Kind::kConnection, "tcp", "limit.connections");
    over.host = arrived.to.host;
    over.port = arrived.to.port;
    over.source_port = arrived.source_port;
    over.detail = "more than " + std::to_string(settings_.connections) + " connections at once";
    settings_.record(over);
    reset_connection(std::move(arrived.socket));
    return true;
  }
  ++*open_;
  arrived.place = std::shared_ptr<void>(nullptr, [open = open_](void*) { --*open; });
  settings_.carry(std::move(arrived));
  return true;
}

// The one that knocks is told at once, with the descriptor that was kept for it; then others may end first.
void Doors::out_of_descriptors() {
  reserve_.reset();
  reset_connection(UniqueFd(::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  reserve_.reset(::fcntl(tcp_.get(), F_DUPFD_CLOEXEC, 3));
  Crossing crossing = denied(Crossing::Kind::kConnection, "tcp", "limit.connections");
  crossing.detail = "no descriptor is left for another connection";
  settings_.record(crossing);
  tcp_watch_->set_events(0);
  retry_ = loop_.once(std::chrono::milliseconds(100), [this] { tcp_watch_->set_events(Loop::kReadable); });
  errno = EMFILE;
}

// The kernel's count of those that came faster than they were looked at.
void Doors::tell_dropped(uint32_t all) {
  if (all == dropped_) return;
  Crossing crossing = denied(Crossing::Kind::kDatagram, "udp", "egress.protocol");
  crossing.detail = "dropped " + std::to_string(all - dropped_) + " more, unseen";
  dropped_ = all;
  settings_.record(crossing);
}

void Doors::sink_some() {
  for (int i = 0; i < kMostInOneTurn && sink_one(); ++i) {
  }
}

bool Doors::sink_one() {
  char byte;
  iovec data{&byte, 1};
  sockaddr_in from{};
  alignas(cmsghdr) char control[256];
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t size = ::recvmsg(sink_.get(), &message, MSG_TRUNC | MSG_DONTWAIT);
  if (size < 0) return errno == EINTR;
  Crossing crossing = denied(Crossing::Kind::kDatagram, "udp", "egress.protocol");
  crossing.source_port = ntohs(from.sin_port);
  crossing.bytes_out = static_cast<uint64_t>(size);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SO_RXQ_OVFL) {
      uint32_t dropped = 0;
      ::memcpy(&dropped, CMSG_DATA(header), sizeof dropped);
      tell_dropped(dropped);
    }
    if (header->cmsg_level != SOL_IP || header->cmsg_type != IP_ORIGDSTADDR) continue;
    sockaddr_in to{};
    ::memcpy(&to, CMSG_DATA(header), sizeof to);
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &to.sin_addr, text, sizeof text);
    crossing.host = text;
    crossing.port = ntohs(to.sin_port);
    if (const std::string* name = settings_.name_of(crossing.host)) crossing.host = *name;
  }
  settings_.record(crossing);
  return true;
}

}  // namespace firestop::egress
