#include "egress/proxy_door.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "egress/testing/carrier_lab.h"

namespace firestop::egress::testing {
namespace {

class ProxyDoorTest : public CarrierLab {
 protected:
  void open(uint32_t connections) {
    UniqueFd listener = bound(SOCK_STREAM);
    port_ = port_of(listener);
    door_ = std::make_unique<ProxyDoor>(loop_, std::move(listener), connections, *carrier_,
                                        [this](const Crossing& crossing) { crossings_.push_back(crossing); });
  }
  // Asks by absolute-form; the origin's answer is `status`.
  void ask_and_answer() {
    const UniqueFd client = testing::client(SOCK_STREAM, port_);
    send_all(client, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
    const UniqueFd origin = this->origin();
    received_until(origin, "\r\n\r\n");
    send_all(origin, "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(received_until(client, "\r\n\r\n"), "HTTP/1.1 204 No Content\r\n\r\n");
  }
  std::unique_ptr<ProxyDoor> door_;
  uint16_t port_ = 0;
};

TEST_F(ProxyDoorTest, ConnectionsAreCountedAndLimited) {
  open(2);
  beside([&] {
    UniqueFd first = testing::client(SOCK_STREAM, port_), second = testing::client(SOCK_STREAM, port_);
    const UniqueFd third = testing::client(SOCK_STREAM, port_);
    EXPECT_EQ(received(third, 1), "");
    first.reset();
    second.reset();
  });
  EXPECT_TRUE(run_until(loop_, [&] { return door_->open_connections() == 0; }));
  beside([&] { ask_and_answer(); });
  EXPECT_TRUE(run_until(loop_, [&] { return carrier_->connections() == 0; }));
  ASSERT_EQ(crossings_.size(), 2u);
  EXPECT_EQ(crossings_[0].code, "limit.connections");
}

rlim_t descriptors_in_use() {
  rlim_t most = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder))
    most = std::max<rlim_t>(most, static_cast<rlim_t>(std::atoi(entry->d_name)));
  ::closedir(folder);
  return most + 1;
}

// Without descriptors nobody is served, everybody is told at once, and it goes on when some are free again.
TEST_F(ProxyDoorTest, inv04_WithoutDescriptorsItIsNotADeadListener) {
#if defined(FIRESTOP_ASAN)
  GTEST_SKIP() << "the sanitizer looks at pointers through a pipe, and needs descriptors of its own";
#endif
  open(100);
  std::vector<UniqueFd> hogs;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  UniqueFd waiting(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const rlimit few{descriptors_in_use() + 8, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) hogs.emplace_back(fd);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port_);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(waiting.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const auto started = std::chrono::steady_clock::now();
  beside([&] {
    char byte = 0;
    EXPECT_EQ(::recv(waiting.get(), &byte, 1, 0), -1);
    EXPECT_EQ(errno, ECONNRESET);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(5));
  ASSERT_FALSE(crossings_.empty());
  EXPECT_EQ(crossings_[0].detail, "no descriptor is left for another connection");
  hogs.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
  beside([&] { ask_and_answer(); });
}

}  // namespace
}  // namespace firestop::egress::testing
