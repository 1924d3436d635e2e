#include "egress/doors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>

namespace firestop::egress {
namespace {

sockaddr_in loopback(uint16_t port = 0) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = htons(port);
  return out;
}

UniqueFd bound(int type) {
  UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in at = loopback();
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  if (type == SOCK_STREAM) {
    EXPECT_EQ(::listen(fd.get(), 64), 0);
  }
  return fd;
}

uint16_t port_of(int fd) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

class DoorsTest : public ::testing::Test {
 protected:
  void open(uint32_t connections) {
    UniqueFd tcp = bound(SOCK_STREAM), sink = bound(SOCK_DGRAM);
    port_ = port_of(tcp.get());
    sink_port_ = port_of(sink.get());
    doors_ = std::make_unique<Doors>(
        loop_, std::move(tcp), std::move(sink),
        Doors::Settings{
            .connections = connections,
            .name_of = [this](const std::string& address) { return address == named_ ? &name_ : nullptr; },
            .carry = [this](Arrived arrived) { arrived_.push_back(std::move(arrived)); },
            .record = [this](const Crossing& crossing) { crossings_.push_back(crossing); }});
  }
  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = loopback(port_);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  void turn(int ms = 100) {
    const auto end = loop_.once(std::chrono::milliseconds(ms), [this] { loop_.stop(); });
    loop_.run();
  }
  // Whether the other side has reset it.
  static bool is_reset(const UniqueFd& fd) {
    char byte;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET;
  }

  Loop loop_;
  std::string named_, name_ = "api.example.com";
  uint16_t port_ = 0, sink_port_ = 0;
  std::vector<Arrived> arrived_;
  std::vector<Crossing> crossings_;
  std::unique_ptr<Doors> doors_;
};

TEST_F(DoorsTest, WhoArrivesIsNamedByItsAddress) {
  open(10);
  const UniqueFd first = connect();
  turn();
  named_ = "127.0.0.1";
  const UniqueFd second = connect();
  turn();
  ASSERT_EQ(arrived_.size(), 2u);
  EXPECT_EQ(arrived_[0].to, (http::Authority{"127.0.0.1", port_}));
  EXPECT_FALSE(arrived_[0].named);
  EXPECT_EQ(arrived_[0].source_port, port_of(first.get()));
  EXPECT_EQ(arrived_[1].to, (http::Authority{"api.example.com", port_}));
  EXPECT_TRUE(arrived_[1].named);
  EXPECT_EQ(arrived_[1].address, "127.0.0.1");
}

TEST_F(DoorsTest, inv05_OneConnectionMoreIsResetAndTold) {
  open(2);
  const UniqueFd a = connect(), b = connect(), c = connect();
  turn();
  EXPECT_EQ(arrived_.size(), 2u);
  EXPECT_EQ(doors_->open_connections(), 2u);
  EXPECT_TRUE(is_reset(c));
  EXPECT_FALSE(is_reset(a));
  ASSERT_EQ(crossings_.size(), 1u);
  EXPECT_EQ(crossings_[0].code, "limit.connections");
  EXPECT_EQ(crossings_[0].source_port, port_of(c.get()));
  // A place counts until whoever carries the connection lets go of it.
  arrived_.pop_back();
  EXPECT_EQ(doors_->open_connections(), 1u);
  const UniqueFd d = connect();
  turn();
  EXPECT_EQ(arrived_.size(), 2u);
}

TEST_F(DoorsTest, inv05_WithoutDescriptorsItGoesOnLater) {
#if defined(FIRESTOP_ASAN)
  GTEST_SKIP() << "the sanitizer looks at pointers through a pipe, and needs descriptors of its own";
#endif
  open(100);
  const UniqueFd waiting = connect();
  UniqueFd next(::dup(waiting.get()));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{static_cast<rlim_t>(next.get()), before.rlim_max};  // nothing above what is open
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  turn(50);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(arrived_.size(), 0u);
  ASSERT_GE(crossings_.size(), 1u);
  EXPECT_EQ(crossings_[0].code, "limit.connections");
  EXPECT_TRUE(is_reset(waiting));
  const UniqueFd later = connect();
  turn(300);
  EXPECT_EQ(arrived_.size(), 1u);
}

TEST_F(DoorsTest, DatagramsSink) {
  open(1);
  const UniqueFd from(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(sink_port_);
  for (size_t size : {size_t{0}, size_t{1}, size_t{1400}}) {
    const std::string data(size, 'x');
    ::sendto(from.get(), data.data(), size, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  turn();
  ASSERT_EQ(crossings_.size(), 3u);
  EXPECT_EQ(crossings_[2].bytes_out, 1400u);
  EXPECT_EQ(crossings_[2].verdict, "denied");
  EXPECT_EQ(crossings_[2].source_port, port_of(from.get()));
}

}  // namespace
}  // namespace firestop::egress
