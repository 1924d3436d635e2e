#include "egress/seam.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "egress/frames.h"

namespace firestop::egress {
namespace {

using ::testing::HasSubstr;

bool readable(int fd, int ms = 2000) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, ms) == 1;
}

void send_frame(const Seam& seam, const std::string& frame) {
  ASSERT_EQ(::write(seam.tap.get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
}

std::string next_frame(const Seam& seam, int ms = 2000) {
  std::string frame(kMostFrame, '\0');
  if (!readable(seam.tap.get(), ms)) return {};
  const ssize_t n = ::read(seam.tap.get(), frame.data(), frame.size());
  frame.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return frame;
}

// A TCP segment without data: flags 2 SYN, 16 ACK, 18 both.
std::string segment(const std::string& to, uint16_t port, uint8_t flags, uint32_t sequence,
                    uint32_t acknowledged, const std::string& from = kGuestAddress) {
  std::string tcp;
  const auto put = [&tcp](uint32_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) tcp.push_back(static_cast<char>(value >> 8 * i & 0xff));
  };
  put(40000, 2);
  put(port, 2);
  put(sequence, 4);
  put(acknowledged, 4);
  put(0x50, 1);
  put(flags, 1);
  put(64000, 2);
  put(0, 4);
  std::string pseudo(8, '\0');
  ::inet_pton(AF_INET, from.c_str(), pseudo.data());
  ::inet_pton(AF_INET, to.c_str(), pseudo.data() + 4);
  pseudo += std::string("\0\x06\0\x14", 4);
  const uint16_t sum = internet_checksum(pseudo + tcp);
  tcp[16] = static_cast<char>(sum >> 8);
  tcp[17] = static_cast<char>(sum & 0xff);
  return frame_of(Packet{from, to, 6, tcp});
}

uint32_t number(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

class SeamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = make_seam();
    ASSERT_TRUE(made) << made.error().to_string();
    seam_ = std::move(*made);
    // What the kernel says of a new link to nobody.
    while (!next_frame(seam_, 50).empty()) {
    }
  }
  bool anything_arrives(int ms = 200) const {
    return readable(seam_.tcp.get(), ms) || readable(seam_.dns_tcp.get(), 0) ||
           readable(seam_.dns_udp.get(), 0) || readable(seam_.sink.get(), 0);
  }
  Seam seam_;
};

TEST_F(SeamTest, AQuestionToAnyResolverComesToOursAndTheAnswerSeemsToComeFromThere) {
  send_frame(seam_, frame_of(Datagram{kGuestAddress, "9.9.9.9", 5555, 53, "question"}));
  ASSERT_TRUE(readable(seam_.dns_udp.get()));
  char buffer[100];
  sockaddr_in from{};
  socklen_t size = sizeof from;
  const ssize_t n =
      ::recvfrom(seam_.dns_udp.get(), buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &size);
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(n)), "question");
  ASSERT_EQ(::sendto(seam_.dns_udp.get(), "answer", 6, 0, reinterpret_cast<sockaddr*>(&from), size), 6);
  const auto answer = datagram_of(next_frame(seam_));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->source, "9.9.9.9");
  EXPECT_EQ(answer->source_port, 53);
  EXPECT_EQ(answer->port, 5555);
  EXPECT_EQ(answer->payload, "answer");
}

TEST_F(SeamTest, inv07_EveryTcpPortEndsHere) {
  const struct {
    const char* address;
    uint16_t port;
    bool dns;
  } wanted[] = {{"93.184.216.34", 443, false},
                {"10.0.0.1", 22, false},
                {"8.8.8.8", 53, true},
                {"192.0.0.1", 15053, false},
                {"169.254.169.254", 80, false}};
  for (const auto& each : wanted) {
    SCOPED_TRACE(each.address);
    send_frame(seam_, segment(each.address, each.port, 2, 1000, 0));
    const auto answer = packet_of(next_frame(seam_));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->source, each.address);
    EXPECT_EQ(answer->payload.at(13), 18);
    send_frame(seam_, segment(each.address, each.port, 16, 1001, number(answer->payload, 4) + 1));
    const int listener = each.dns ? seam_.dns_tcp.get() : seam_.tcp.get();
    ASSERT_TRUE(readable(listener));
    const UniqueFd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    const auto to = original_destination(connection.get());
    ASSERT_TRUE(to) << to.error().to_string();
    EXPECT_EQ(to->address, each.address);
    EXPECT_EQ(to->port, each.port);
    EXPECT_EQ(to->source_port, 40000);
    // Ended by a reset, so that the next one may have its port.
    send_frame(seam_, segment(each.address, each.port, 4, 1001, 0));
    ASSERT_TRUE(readable(connection.get()));
  }
}

TEST_F(SeamTest, inv07_OtherDatagramsSinkAndSayWhereTheyWereToGo) {
  const std::pair<const char*, uint16_t> wanted[] = {{"1.2.3.4", 443},
                                                     {"224.0.0.251", 5353},
                                                     {"9.9.9.9", 853},
                                                     {"192.0.0.1", 15053},
                                                     {"255.255.255.255", 67}};
  for (const auto& [address, port] : wanted) {
    SCOPED_TRACE(address);
    send_frame(seam_, frame_of(Datagram{kGuestAddress, address, 7777, port, "x"}));
    if (std::string_view(address) == "224.0.0.251" || std::string_view(address) == "255.255.255.255") {
      readable(seam_.sink.get(), 100);  // may come or be dropped: it must not go elsewhere
    } else {
      ASSERT_TRUE(readable(seam_.sink.get()));
    }
    EXPECT_FALSE(readable(seam_.dns_udp.get(), 0));
    char data[10];
    alignas(cmsghdr) char control[200];
    iovec bytes{data, sizeof data};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(seam_.sink.get(), &message, 0) < 0) continue;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    ASSERT_TRUE(header && header->cmsg_type == IP_ORIGDSTADDR);
    sockaddr_in to{};
    memcpy(&to, CMSG_DATA(header), sizeof to);
    EXPECT_EQ(ntohs(to.sin_port), port);
    EXPECT_STREQ(::inet_ntoa(to.sin_addr), address);
  }
}

TEST_F(SeamTest, inv07_NothingElseArrivesOrIsAnswered) {
  const std::string echo("\x08\0\xf7\xff\0\0\0\0", 8);
  send_frame(seam_, frame_of(Packet{kGuestAddress, kGatewayAddress, 1, echo}));              // ping
  send_frame(seam_, frame_of(Packet{kGuestAddress, "1.2.3.4", 47, "gre"}));                  // tunnels
  send_frame(seam_, frame_of(Packet{kGuestAddress, "1.2.3.4", 132, std::string(12, 'x')}));  // SCTP
  send_frame(seam_, frame_of(Datagram{"192.0.0.3", "9.9.9.9", 5555, 53, "another's"}));
  send_frame(seam_, frame_of(Datagram{"10.0.0.1", "9.9.9.9", 5555, 53, "another's"}));
  send_frame(seam_, frame_of(Datagram{"192.0.0.1", "9.9.9.9", 5555, 53, "the gateway's"}));
  send_frame(seam_, frame_of(Datagram{"127.0.0.1", "9.9.9.9", 5555, 53, "the host's"}));
  send_frame(seam_, segment("1.2.3.4", 443, 2, 1, 0, "192.0.0.3"));
  send_frame(seam_, segment("127.0.0.1", 443, 2, 1, 0));
  std::string arp = frame_of(Packet{kGuestAddress, kGatewayAddress, 0, std::string(30, '\0')});
  arp[kVnetHeader + 13] = 6;
  const std::string question("\0\1\x08\0\6\4\0\1", 8);
  arp.replace(kVnetHeader + 14, question.size(), question);
  send_frame(seam_, arp);
  std::string six = frame_of(Packet{kGuestAddress, kGatewayAddress, 0, std::string(60, '\0')});
  six.replace(kVnetHeader + 12, 3, "\x86\xdd\x60");
  send_frame(seam_, six);
  EXPECT_FALSE(anything_arrives());
  EXPECT_EQ(next_frame(seam_, 200), "");
}

TEST_F(SeamTest, TheTapGoesWhenTheLastDescriptorGoes) {
  const std::string before = seam_rules({});
  seam_ = Seam{};
  // Nothing to find on the host: no process, no name, no device.
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net"))
    EXPECT_NE(entry.path().filename(), "guest");
}

TEST_F(SeamTest, inv05_TheLinkIsCountedAndCapped) {
  const auto before = bytes_of(seam_.meter.get());
  ASSERT_TRUE(before) << before.error().to_string();
  const std::string frame = frame_of(Datagram{kGuestAddress, "9.9.9.9", 5555, 53, std::string(1000, 'x')});
  send_frame(seam_, frame);
  ASSERT_TRUE(readable(seam_.dns_udp.get()));
  EXPECT_EQ(*bytes_of(seam_.meter.get()), *before + frame.size() - kVnetHeader);

  auto capped = make_seam({.bytes = 3000});
  ASSERT_TRUE(capped) << capped.error().to_string();
  for (int i = 0; i < 5; ++i) send_frame(*capped, frame);
  int arrived = 0;
  char buffer[2000];
  while (readable(capped->dns_udp.get(), 100) && ::recv(capped->dns_udp.get(), buffer, sizeof buffer, 0) > 0)
    ++arrived;
  EXPECT_EQ(arrived, 2);
}

TEST(Seam, inv04_ASetUpThatFailsHalfWayStartsNothing) {
  for (int step = 1; step <= static_cast<int>(SeamStep::kRules); ++step) {
    const auto made = make_seam({.broken = SeamStep{step}});
    ASSERT_FALSE(made) << step;
    EXPECT_EQ(made.error().code, "egress.seam");
    EXPECT_THAT(made.error().message, HasSubstr(to_string(SeamStep{step})));
  }
}

TEST(Seam, TheRateIsPartOfTheRules) {
  EXPECT_THAT(seam_rules({.rate = 2500000}),
              HasSubstr("limit rate over 2500000 bytes/second burst 625000 bytes drop"));
  EXPECT_EQ(seam_rules({}).find("limit rate"), std::string::npos);
  EXPECT_TRUE(make_seam({.rate = 2500000}));
  EXPECT_TRUE(make_seam({.rate = 1}));
}

// 4 MiB as fast as they can be written; how many of the datagrams come through.
size_t come_through(uint64_t rate) {
  auto made = make_seam({.rate = rate});
  EXPECT_TRUE(made) << made.error().to_string();
  if (!made) return 0;
  constexpr size_t kDatagrams = 4096;
  const std::string frame = frame_of(Datagram{kGuestAddress, "9.9.9.9", 5555, 9999, std::string(1000, 'x')});
  size_t out = 0;
  char buffer[2000];
  const auto count = [&] {
    while (::recv(made->sink.get(), buffer, sizeof buffer, MSG_DONTWAIT) > 0) ++out;
  };
  for (size_t i = 0; i < kDatagrams; ++i) {
    send_frame(*made, frame);
    if (i % 16 == 0) count();
  }
  while (readable(made->sink.get(), 200)) count();
  return out;
}

// A policer's burst is 256 KiB: of 4 MiB that come at once that much passes, and what the time of the flood
// allows.
TEST(Seam, inv05_TheRateHoldsAFloodBack) {
  const size_t freely = come_through(0), held = come_through(50000);
  EXPECT_GT(freely, 2000u);
  EXPECT_GT(held, 100u);
  EXPECT_LT(held * 4, freely);
}

// In a child, with a tun device that everybody may open, as most hosts have it.
TEST(Seam, AnOrdinaryUserMakesTheSame) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other tests do it already";
  char folder[] = "/tmp/firestop-tun-XXXXXX";
  ASSERT_TRUE(::mkdtemp(folder));
  const std::string device = std::string(folder) + "/tun";
  const pid_t child = ::fork();
  if (child == 0) {
    ::umask(0);
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mknod(device.c_str(), S_IFCHR | 0666, makedev(10, 200)) != 0 ||
        ::mount(device.c_str(), "/dev/net/tun", nullptr, MS_BIND, nullptr) != 0 || ::setgid(65534) != 0 ||
        ::setuid(65534) != 0 || ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0)
      ::_exit(2);
    const auto made = make_seam();
    if (!made) (void)!::write(2, made.error().message.data(), made.error().message.size());
    if (!made) ::_exit(1);
    const std::string frame = frame_of(Datagram{kGuestAddress, "9.9.9.9", 5555, 53, "question"});
    if (::write(made->tap.get(), frame.data(), frame.size()) < 0) ::_exit(3);
    ::_exit(readable(made->dns_udp.get()) ? 0 : 4);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace firestop::egress
