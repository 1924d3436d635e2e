#include "egress/testing/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace firestop::egress::testing {
namespace {

constexpr timeval kPatience{15, 0};

void be_patient(const UniqueFd& socket) {
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
}

}  // namespace

UniqueFd bound(int type, uint16_t port) {
  UniqueFd socket(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0) << port;
  EXPECT_TRUE(type != SOCK_STREAM || ::listen(socket.get(), 64) == 0);
  return socket;
}

UniqueFd bound_v6(uint16_t port) {
  UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(port);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0) << port;
  EXPECT_EQ(::listen(socket.get(), 64), 0);
  return socket;
}

uint16_t port_of(const UniqueFd& socket) {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
  return ntohs(own.sin_port);
}

UniqueFd client(int type, uint16_t port, const char* address) {
  UniqueFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  be_patient(socket);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return socket;
}

UniqueFd accepted(const UniqueFd& listener) {
  pollfd ready{listener.get(), POLLIN, 0};
  ::poll(&ready, 1, static_cast<int>(kPatience.tv_sec) * 1000);
  UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.valid()) be_patient(socket);
  return socket;
}

std::string received(const UniqueFd& socket, size_t most) {
  std::string out(most, '\0');
  out.resize(static_cast<size_t>(std::max<ssize_t>(::recv(socket.get(), out.data(), out.size(), 0), 0)));
  return out;
}

std::string received_exactly(const UniqueFd& socket, size_t size) {
  std::string out;
  while (out.size() < size) {
    const std::string more = received(socket, size - out.size());
    if (more.empty()) break;
    out += more;
  }
  return out;
}

std::string received_until(const UniqueFd& socket, std::string_view end) {
  std::string out;
  while (!out.ends_with(end)) {
    const std::string more = received(socket, 1);
    if (more.empty()) break;
    out += more;
  }
  return out;
}

std::string received_all(const UniqueFd& socket) {
  std::string out;
  for (std::string more; !(more = received(socket, 65536)).empty();) out += more;
  return out;
}

void send_all(const UniqueFd& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void run_beside(Loop& loop, const std::function<void()>& other) {
  std::atomic<bool> done = false;
  std::thread thread([&] {
    other();
    done = true;
  });
  const auto look = loop.every(std::chrono::milliseconds(2), [&] {
    if (done) loop.stop();
  });
  loop.run();
  thread.join();
}

bool run_until(Loop& loop, const std::function<bool()>& done) {
  bool patient = true;
  const auto look = loop.every(std::chrono::milliseconds(2), [&] {
    if (done()) loop.stop();
  });
  const auto limit = loop.once(std::chrono::seconds(kPatience.tv_sec), [&] {
    patient = false;
    loop.stop();
  });
  if (!done()) loop.run();
  return patient;
}

}  // namespace firestop::egress::testing
