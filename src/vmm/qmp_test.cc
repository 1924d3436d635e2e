#include "vmm/qmp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "base/file.h"

namespace firestop::vmm {
namespace {

using ::testing::HasSubstr;

struct Hostile {
  const char* why;
  std::string bytes;
};

TEST(QmpParser, RefusesWhatIsNoQmpAndStaysBroken) {
  const Hostile table[] = {
      {"not JSON", "hello\n"},
      {"an array", "[1,2]\n"},
      {"a number", "7\n"},
      {"cut short by the line's end", "{\"return\":\n"},
      {"two values on a line", "{} {}\n"},
      {"a duplicate key, of which a reader might take either", "{\"return\":1,\"return\":2}\n"},
      {"no UTF-8", "{\"a\":\"\xff\"}\n"},
      {"a NUL", std::string("{\"a\":1}\0\n", 9)},
      {"deeper than any answer", "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}\n"},
      {"a line that never ends", "{\"a\":\"" + std::string(kMaxQmpLine, 'x')},
      {"a line that ends too late", "{\"a\":\"" + std::string(kMaxQmpLine, 'x') + "\"}\n"},
  };
  for (const auto& row : table) {
    QmpParser parser;
    parser.feed(row.bytes);
    const auto first = parser.next();
    ASSERT_FALSE(first) << row.why;
    EXPECT_EQ(first.error().code, "vmm.qmp") << row.why;
    parser.feed("{\"return\":{}}\n");
    EXPECT_FALSE(parser.next()) << row.why << ": must stay broken";
  }
}

TEST(QmpParser, TakesLinesHoweverTheyArrive) {
  const std::string text = "{\"QMP\":{}}\r\n\r\n{\"event\":\"RESUME\"}\n{\"return\":{},\"id\":1}\n";
  for (size_t step : {1u, 3u, 1000u}) {
    QmpParser parser;
    std::vector<codec::Json> got;
    for (size_t at = 0; at < text.size(); at += step) {
      parser.feed(std::string_view(text).substr(at, step));
      for (;;) {
        auto next = parser.next();
        ASSERT_TRUE(next);
        if (!*next) break;
        got.push_back(**next);
      }
    }
    ASSERT_EQ(got.size(), 3u) << "step " << step;
    EXPECT_EQ(got[1].string_or("event", ""), "RESUME");
    EXPECT_EQ(got[2].int_or("id", 0), 1);
  }
}

class QmpClient : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    qmp_ = Qmp(UniqueFd(fds[0]));
    qemu_.reset(fds[1]);
  }
  void say(std::string_view text) { ASSERT_TRUE(write_all(qemu_.get(), text)); }
  static Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(200); }
  static Deadline later() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

  Qmp qmp_;
  UniqueFd qemu_;
};

TEST_F(QmpClient, FindsItsAnswerAmongOthersAndRemembersEvents) {
  say("{\"QMP\":{\"version\":{}}}\n{\"return\":{},\"id\":1}\n{\"event\":\"RESUME\",\"timestamp\":{}}\n"
      "{\"return\":{\"status\":\"running\"},\"id\":2}\n");
  ASSERT_TRUE(qmp_.send("qmp_capabilities"));
  const auto answer = qmp_.execute("query-status", {}, later());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->string_or("status", ""), "running");
  EXPECT_TRUE(qmp_.wait_event("RESUME", soon()));
  char sent[512] = {};
  ASSERT_GT(::recv(qemu_.get(), sent, sizeof sent - 1, 0), 0);
  EXPECT_STREQ(sent,
               "{\"execute\":\"qmp_capabilities\",\"id\":1}\n{\"execute\":\"query-status\",\"id\":2}\n");
}

TEST_F(QmpClient, ARefusalIsAnErrorWithItsReasonAlsoForAnEarlierCommand) {
  say("{\"error\":{\"class\":\"GenericError\",\"desc\":\"no such "
      "thing\"},\"id\":1}\n{\"return\":{},\"id\":2}\n");
  ASSERT_TRUE(qmp_.send("one"));
  const auto answer = qmp_.execute("two", {}, later());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, "vmm.qmp");
  EXPECT_THAT(answer.error().message, HasSubstr("no such thing"));
}

TEST_F(QmpClient, SilenceEndsByTheDeadline) {
  const auto waited = qmp_.wait_event("RESUME", soon());
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, "vmm.qmp_timeout");
}

TEST_F(QmpClient, AFloodOfOtherEventsEndsByTheDeadlineToo) {
  std::jthread flood([this](const std::stop_token& stop) {
    const std::string line = "{\"event\":\"RTC_CHANGE\"}\n";
    while (!stop.stop_requested())
      if (::send(qemu_.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) return;
  });
  const auto waited = qmp_.wait_event("RESUME", soon());
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, "vmm.qmp_timeout");
  qmp_ = Qmp();  // closes, so that the flood ends
}

TEST_F(QmpClient, AnEndedQemuIsToldFromASilentOne) {
  qemu_.reset();
  const auto waited = qmp_.wait_event("RESUME", later());
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, "vmm.qemu_ended");
  EXPECT_FALSE(qmp_.send("quit"));
}

TEST_F(QmpClient, PassesADescriptor) {
  const UniqueFd file(::memfd_create("passed", 0));
  ASSERT_TRUE(qmp_.send("getfd", {{"fdname", "state"}}, file.get()));
  char bytes[256];
  iovec part{bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ASSERT_GT(::recvmsg(qemu_.get(), &header, MSG_CMSG_CLOEXEC), 0);
  const cmsghdr* attached = CMSG_FIRSTHDR(&header);
  ASSERT_NE(attached, nullptr);
  EXPECT_EQ(attached->cmsg_type, SCM_RIGHTS);
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(attached), sizeof fd);
  const UniqueFd received(fd);
  EXPECT_TRUE(received.valid());
}

}  // namespace
}  // namespace firestop::vmm
