#include "egress/dns_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "egress/testing/fake_guard.h"
#include "egress/testing/sockets.h"

namespace firestop::egress {
namespace {

using namespace std::string_literals;
using namespace testing;

std::string question(uint8_t id, const std::string& host = "api.example.com") {
  return "\0"s + static_cast<char>(id) + "\1\0\0\1\0\0\0\0\0\0"s + codec::dns_wire_name(host) + "\0\1\0\1"s;
}
std::string framed(const std::string& message) {
  return std::string{static_cast<char>(message.size() >> 8), static_cast<char>(message.size())} + message;
}
std::string tcp_answer(const UniqueFd& socket) {
  const std::string size = received_exactly(socket, 2);
  if (size.size() < 2) return "";
  return received_exactly(
      socket, static_cast<size_t>(static_cast<uint8_t>(size[0])) << 8 | static_cast<uint8_t>(size[1]));
}

class DnsServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    guard.names = {"api.example.com"};
    UniqueFd udp = bound(SOCK_DGRAM), tcp = bound(SOCK_STREAM);
    udp_port = port_of(udp);
    tcp_port = port_of(tcp);
    server = std::make_unique<DnsServer>(loop, std::move(udp), std::move(tcp), answers);
  }
  void serve(const std::function<void()>& run_client) { run_beside(loop, run_client); }

  Loop loop;
  FakeGuard guard;
  AddressBook book;
  std::vector<Crossing> crossings;
  NameAnswers answers{guard, book, [this](const Crossing& crossing) { crossings.push_back(crossing); }};
  uint16_t udp_port = 0, tcp_port = 0;
  std::unique_ptr<DnsServer> server;
};

TEST_F(DnsServerTest, ByUdpFromTheVeryAddressThatWasAsked) {
  serve([&] {
    for (const char* address : {"127.0.0.1", "127.0.0.2", "127.9.9.9"}) {
      const UniqueFd asker = client(SOCK_DGRAM, udp_port, address);  // takes answers of this address alone
      send_all(asker, question(7));
      const std::string answer = received(asker, 1500);
      ASSERT_GT(answer.size(), codec::kDnsHeader) << address;
      EXPECT_EQ(answer.substr(answer.size() - 4), "\xc6\x12\1\1"s);
    }
  });
  ASSERT_EQ(crossings.size(), 3u);
  EXPECT_NE(crossings[0].source_port, 0);
}

TEST_F(DnsServerTest, DatagramsThatAreNoQuestionsGetNoAnswerAndEndNothing) {
  serve([&] {
    const UniqueFd asker = client(SOCK_DGRAM, udp_port);
    for (const std::string& bytes : {"x"s, std::string(8000, 'x'), "\0\7\x81\x80\0\1\0\0\0\0\0\0"s})
      send_all(asker, bytes);
    send_all(asker, question(7));
    EXPECT_EQ(received(asker, 1500).substr(0, 2), "\0\7"s) << "the first answer is the question's";
  });
}

TEST_F(DnsServerTest, ByTcpManyInOneSegmentAndOneInManySegments) {
  serve([&] {
    const UniqueFd asker = client(SOCK_STREAM, tcp_port);
    std::string all;
    for (uint8_t id = 1; id <= 100; ++id) all += framed(question(id));
    send_all(asker, all);
    for (uint8_t id = 1; id <= 100; ++id)
      ASSERT_EQ(tcp_answer(asker).substr(0, 2), "\0"s + static_cast<char>(id));
    for (const char c : framed(question(101))) send_all(asker, {&c, 1});
    EXPECT_EQ(tcp_answer(asker).substr(0, 2), "\0\x65"s);
  });
}

TEST_F(DnsServerTest, AnIdleConnectionIsClosed) {
  UniqueFd tcp = bound(SOCK_STREAM);
  const uint16_t port = port_of(tcp);
  const DnsServer impatient(loop, bound(SOCK_DGRAM), std::move(tcp), answers, std::chrono::milliseconds(100));
  serve([&] {
    const UniqueFd asker = client(SOCK_STREAM, port);
    send_all(asker, framed(question(1)) + "\0"s);
    EXPECT_NE(tcp_answer(asker), "");
    EXPECT_EQ(received(asker, 1), "");
    pollfd ended{asker.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, 0), 1) << "ended, not out of patience";
  });
}

TEST_F(DnsServerTest, AMessageThatIsTooLongOrNoneEndsTheConnection) {
  serve([&] {
    for (const std::string& bytes :
         {"\xff\xff"s, "\x10\x01"s, "\0\0"s, "\0\1x"s, framed("\0\7\x81\x80\0\1\0\0\0\0\0\0"s)}) {
      const UniqueFd asker = client(SOCK_STREAM, tcp_port);
      send_all(asker, bytes);
      EXPECT_EQ(received(asker, 1), "");
      pollfd ended{asker.get(), POLLIN, 0};
      EXPECT_EQ(::poll(&ended, 1, 0), 1) << "ended, not out of patience";
    }
  });
}

TEST_F(DnsServerTest, TheLongestIdleConnectionGivesWay) {
  serve([&] {
    std::vector<UniqueFd> askers;
    for (size_t i = 0; i < DnsServer::kMostConnections; ++i) {
      askers.push_back(client(SOCK_STREAM, tcp_port));
      send_all(askers.back(), framed(question(1)));
      ASSERT_NE(tcp_answer(askers.back()), "");
    }
    send_all(askers[0], framed(question(2)));
    ASSERT_NE(tcp_answer(askers[0]), "") << "not the longest idle one any more";
    const UniqueFd one_more = client(SOCK_STREAM, tcp_port);
    send_all(one_more, framed(question(3)));
    EXPECT_NE(tcp_answer(one_more), "");
    EXPECT_EQ(received(askers[1], 1), "");
    send_all(askers[0], framed(question(4)));
    EXPECT_NE(tcp_answer(askers[0]), "");
  });
}

// Who asks without reading is held up; memory stays at kMostUnsent and the sockets' buffers.
TEST_F(DnsServerTest, inv05_AnAskerThatReadsNothingIsHeldUp) {
  serve([&] {
    const UniqueFd asker = client(SOCK_STREAM, tcp_port);
    const std::string many = [] {
      std::string out;
      for (int i = 0; i < 1000; ++i) out += framed(question(1));
      return out;
    }();
    size_t sent = 0;
    for (int quiet = 0; quiet < 20;) {
      const ssize_t now = ::send(asker.get(), many.data() + sent % many.size(),
                                 many.size() - sent % many.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      sent += static_cast<size_t>(std::max<ssize_t>(now, 0));
      quiet = now > 0 ? 0 : quiet + 1;
      if (now < 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ASSERT_LT(sent, 100u << 20) << "taken without end";
    }
    // And goes on, with every answer whole, when it reads.
    std::thread rest([&] {
      const size_t missing = (many.size() - sent % many.size()) % framed(question(1)).size();
      const std::string end = many.substr(many.size() - missing);
      for (size_t at = 0; at < end.size();) {
        const ssize_t now = ::send(asker.get(), end.data() + at, end.size() - at, MSG_NOSIGNAL);
        if (now <= 0) break;
        at += static_cast<size_t>(now);
      }
    });
    const size_t questions = (sent + framed(question(1)).size() - 1) / framed(question(1)).size();
    size_t answered = 0;
    while (answered < questions && tcp_answer(asker).starts_with("\0\1"s)) ++answered;
    EXPECT_EQ(answered, questions);
    rest.join();
  });
}

TEST_F(DnsServerTest, inv04_WithoutDescriptorsItComesBack) {
#if defined(FIRESTOP_ASAN)
  GTEST_SKIP() << "the sanitizer looks at pointers through a pipe, and needs descriptors of its own";
#endif
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  serve([&] {
    const UniqueFd early = client(SOCK_STREAM, tcp_port);
    send_all(early, framed(question(1)));
    ASSERT_NE(tcp_answer(early), "");
    const UniqueFd late = client(SOCK_STREAM, tcp_port, "127.0.0.1");  // in the listen queue or accepted
    const UniqueFd starved(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rlimit few = before;
    few.rlim_cur = 3;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(tcp_port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(starved.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval patience{10, 0};
    ::setsockopt(starved.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(received(early, 1), "") << "gave way for want of descriptors";
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    send_all(starved, framed(question(2)));
    EXPECT_NE(tcp_answer(starved), "");
    const UniqueFd udp = client(SOCK_DGRAM, udp_port);
    send_all(udp, question(3));
    EXPECT_NE(received(udp, 1500), "");
  });
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace firestop::egress
