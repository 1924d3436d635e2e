#include "guest/evidence/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

namespace firestop::guest {
namespace {

constexpr size_t kMostMessage = 16u << 10;  // audit's longest are below 9 KiB
constexpr int kAnswerMs = 5000;

}  // namespace

Result<Netlink> Netlink::open(int protocol, uint32_t groups) {
  Netlink link;
  link.fd_.reset(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, protocol));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (!link.fd_.valid() || ::bind(link.fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return fail_errno("evidence.netlink", "cannot make netlink socket " + std::to_string(protocol));
  if (::setsockopt(link.fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer) != 0)
    return fail_errno("evidence.netlink", "cannot give a netlink socket its buffer");
  return link;
}

Result<void> Netlink::send(uint16_t type, std::string_view payload) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(payload.size()));
  header.nlmsg_type = type;
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  header.nlmsg_seq = ++sequence_;
  std::string message(bytes_of(header));
  message += payload;
  message.resize(NLMSG_ALIGN(message.size()));
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(fd_.get(), message.data(), message.size(), 0, reinterpret_cast<sockaddr*>(&kernel),
               sizeof kernel) < 0)
    return fail_errno("evidence.netlink", "cannot ask the kernel");
  return {};
}

Netlink::Got Netlink::receive(uint16_t& type, std::string& payload) {
  alignas(nlmsghdr) char buffer[kMostMessage];
  while (true) {
    const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == ENOBUFS ? Got::kOverflow : Got::kNothing;
    if (got < NLMSG_HDRLEN) continue;
    // Audit's records count their length without the header: the datagram's own is what holds.
    nlmsghdr header;
    ::memcpy(&header, buffer, sizeof header);
    type = header.nlmsg_type;
    payload.assign(buffer + NLMSG_HDRLEN, static_cast<size_t>(got) - NLMSG_HDRLEN);
    return Got::kMessage;
  }
}

Result<std::string> Netlink::exchange(uint16_t type, std::string_view payload) {
  TRY(send(type, payload));
  std::string answer, message;
  uint16_t kind = 0;
  while (true) {
    pollfd state{fd_.get(), POLLIN, 0};
    if (::poll(&state, 1, kAnswerMs) == 0) return fail("evidence.netlink", "the kernel does not answer");
    while (receive(kind, message) == Got::kMessage) {
      if (kind != NLMSG_ERROR) {
        if (answer.empty()) answer = message;
        continue;
      }
      nlmsgerr result{};
      if (message.size() < sizeof result) continue;
      ::memcpy(&result, message.data(), sizeof result);
      if (result.msg.nlmsg_seq != sequence_) continue;
      if (result.error == 0) return answer;
      errno = -result.error;
      return fail_errno("evidence.netlink", "the kernel refuses request " + std::to_string(type));
    }
  }
}

Result<void> Netlink::request(uint16_t type, std::string_view payload) {
  TRY(exchange(type, payload));
  return {};
}

Result<std::string> Netlink::query(uint16_t type, std::string_view payload) {
  return exchange(type, payload);
}

}  // namespace firestop::guest
