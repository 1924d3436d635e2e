#include "egress/dns_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace firestop::egress {
namespace {

constexpr std::chrono::milliseconds kRetry{100};  // after accept() found no descriptor
constexpr size_t kMostRead = 4096;                // bytes at once
constexpr size_t kMostQuestion = 4096;            // bytes of a message; real ones have some 100

uint16_t port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

}  // namespace

// One asker by TCP: messages with two bytes of length before each (RFC 1035 section 4.2.2), any number of
// them, answered in order.
class DnsServer::Connection {
 public:
  Connection(DnsServer& server, UniqueFd socket, uint16_t port)
      : server_(server), socket_(std::move(socket)), port_(port) {
    watch_ = server_.loop_.watch(socket_.get(), Loop::kReadable, [this](int events) { turn(events); });
    stay_open();
  }

 private:
  // May be the last thing that it does: ends by close().
  void turn(int events) {
    if ((events & Loop::kWritable) && !send()) return close();
    if ((events & (Loop::kReadable | Loop::kHangup)) && !receive()) return close();
    do {
      if (!answer() || !send()) return close();
    } while (unsent_.empty() && whole_question());
    watch_->set_events((unsent_.size() < kMostUnsent ? int{Loop::kReadable} : 0) |
                       (unsent_.empty() ? 0 : int{Loop::kWritable}));
  }

  bool receive() {
    std::array<char, kMostRead> buffer;
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    received_.append(buffer.data(), static_cast<size_t>(got));
    stay_open();
    return true;
  }

  size_t question_size() const {
    return static_cast<size_t>(static_cast<uint8_t>(received_[0])) << 8 | static_cast<uint8_t>(received_[1]);
  }
  bool whole_question() const { return received_.size() >= 2 && received_.size() >= 2 + question_size(); }

  bool answer() {
    while (received_.size() >= 2 && unsent_.size() < kMostUnsent) {
      const size_t size = question_size();
      if (size > kMostQuestion) return false;
      if (!whole_question()) return true;
      const std::string out = server_.answers_.answer(std::string_view(received_).substr(2, size),
                                                      NameAnswers::Transport::kTcp, port_);
      received_.erase(0, 2 + size);
      if (out.empty()) return false;
      unsent_ += static_cast<char>(out.size() >> 8);
      unsent_ += static_cast<char>(out.size() & 0xff);
      unsent_ += out;
    }
    return true;
  }

  bool send() {
    while (!unsent_.empty()) {
      const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      unsent_.erase(0, static_cast<size_t>(sent));
    }
    return true;
  }

  // It goes to the end of the server's list: the others are idle for longer.
  void stay_open() {
    auto& all = server_.connections_;
    const auto self =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == this; });
    if (self != all.end()) all.splice(all.end(), all, self);
    idle_ = server_.loop_.once(server_.idle_, [this] { close(); });
  }

  void close() {
    auto& all = server_.connections_;
    const auto self =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == this; });
    all.erase(self);  // destroys this
  }

  DnsServer& server_;
  UniqueFd socket_;
  const uint16_t port_;
  std::string received_, unsent_;
  Loop::Handle watch_, idle_;  // before the socket they go
};

DnsServer::DnsServer(Loop& loop, UniqueFd udp, UniqueFd tcp, NameAnswers& answers,
                     std::chrono::milliseconds idle)
    : loop_(loop), udp_(std::move(udp)), tcp_(std::move(tcp)), answers_(answers), idle_(idle) {
  // The answer must come from the very address that was asked.
  const int on = 1;
  (void)::setsockopt(udp_.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  udp_watch_ = loop_.watch(udp_.get(), Loop::kReadable, [this](int) { take_datagrams(); });
  tcp_watch_ = loop_.watch(tcp_.get(), Loop::kReadable, [this](int) { take_connections(); });
}

DnsServer::~DnsServer() = default;

void DnsServer::take_datagrams() {
  for (int i = 0; i < kMostInOneTurn; ++i)
    if (!take_datagram()) return;
}

bool DnsServer::take_datagram() {
  std::array<char, kMostQuestion> buffer;
  sockaddr_storage from{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in_pktinfo))> control{};
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(udp_.get(), &message, MSG_DONTWAIT);
  if (got < 0) return errno == EINTR;
  if (message.msg_flags & MSG_TRUNC) return true;  // longer than any question

  std::string out =
      answers_.answer({buffer.data(), static_cast<size_t>(got)}, NameAnswers::Transport::kUdp, port_of(from));
  if (out.empty()) return true;
  part = {out.data(), out.size()};
  message.msg_flags = 0;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != IPPROTO_IP || head->cmsg_type != IP_PKTINFO) continue;
    in_pktinfo info;
    std::memcpy(&info, CMSG_DATA(head), sizeof info);
    info.ipi_spec_dst = info.ipi_addr;
    info.ipi_ifindex = 0;
    std::memcpy(CMSG_DATA(head), &info, sizeof info);
  }
  // A full socket loses the answer, as UDP may; the asker asks again.
  (void)::sendmsg(udp_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return true;
}

void DnsServer::take_connections() {
  for (int i = 0; i < kMostInOneTurn; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    UniqueFd socket(
        ::accept4(tcp_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause_accepting();
      if (errno != EINTR && errno != ECONNABORTED) return;
      continue;
    }
    if (connections_.size() >= kMostConnections) connections_.pop_front();
    connections_.push_back(std::make_unique<Connection>(*this, std::move(socket), port_of(from)));
  }
}

// Without a descriptor to spare the socket would be readable for ever. One of ours goes, and soon it is tried
// again.
void DnsServer::pause_accepting() {
  if (!connections_.empty()) connections_.pop_front();
  tcp_watch_->set_events(0);
  retry_ = loop_.once(kRetry, [this] { tcp_watch_->set_events(Loop::kReadable); });
}

}  // namespace firestop::egress
