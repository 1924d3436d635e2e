#include "egress/resolver.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "egress/dns_server.h"
#include "egress/lock_down.h"
#include "egress/testing/fake_guard.h"
#include "egress/testing/own_network.h"
#include "egress/testing/sockets.h"

namespace firestop::egress {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

UniqueFd at_port_53(int type) {
  UniqueFd socket(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(type != SOCK_STREAM || ::listen(socket.get(), 8) == 0);
  return socket;
}

// The host's C library asks our own DNS server, which stands for the host's.
class SystemResolverTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!enter_own_network().empty()) return;
    replace_file("/etc/nsswitch.conf", "hosts: files dns\n");
    replace_file("/etc/hosts", "1.2.3.9 fixed.example.com\n");
    // The first server is down.
    replace_file(
        "/etc/resolv.conf",
        "nameserver 127.0.0.9\nnameserver 127.0.0.1\nsearch corp.example\noptions timeout:5 ndots:5\n");
  }
  void SetUp() override {
    if (!enter_own_network().empty())
      GTEST_SKIP() << "this host gives no network of our own: " << enter_own_network();
    upstream = std::make_unique<DnsServer>(loop, at_port_53(SOCK_DGRAM), at_port_53(SOCK_STREAM), answers);
    guard.names = {"up.example.com", "other.example.com"};
  }
  std::string resolved(const std::string& name) {
    std::string out;
    const auto lookup = resolver.look_up(name, [&](const Result<std::vector<codec::Address>>& answer) {
      if (!answer) {
        out = answer.error().code;
        return;
      }
      for (const auto& address : *answer) out += (out.empty() ? "" : " ") + address.to_string();
    });
    EXPECT_TRUE(run_until(loop, [&] { return !out.empty(); }));
    return out;
  }

  Loop loop;
  FakeGuard guard;
  AddressBook book;
  NameAnswers answers{guard, book, [](const Crossing&) {}};
  std::unique_ptr<DnsServer> upstream;
  SystemResolver resolver{loop};
};

TEST_F(SystemResolverTest, TheSecondServerIsAskedWhenTheFirstIsDown) {
  EXPECT_EQ(resolved("up.example.com"), "198.18.1.1");
}

TEST_F(SystemResolverTest, ANameThatDoesNotExistIsNotLookedForElsewhere) {
  EXPECT_EQ(resolved("nx.example.com"), "egress.unresolved");
  EXPECT_THAT(guard.asked, Contains("nx.example.com"));
  EXPECT_THAT(guard.asked, Not(Contains("nx.example.com.corp.example")))
      << "the search list asks for other names";
}

TEST_F(SystemResolverTest, TheHostsFileCounts) {
  EXPECT_EQ(resolved("fixed.example.com"), "1.2.3.9");
}

TEST_F(SystemResolverTest, WhoAsksForWhatIsBeingLookedUpWaitsForThat) {
  std::vector<std::string> order;
  std::vector<std::unique_ptr<Resolver::Lookup>> lookups;
  for (const char* who : {"a", "b", "c"})
    lookups.push_back(resolver.look_up("up.example.com", [&order, &lookups, who](const auto& answer) {
      EXPECT_TRUE(answer);
      order.emplace_back(who);
      if (order.size() == 1) lookups[1].reset();  // b does not want to know any more
    }));
  EXPECT_TRUE(run_until(loop, [&] { return order.size() == 2; }));
  EXPECT_THAT(order, ElementsAre("a", "c"));
  EXPECT_EQ(guard.asked.size(), 2u) << "once for A and once for AAAA";
}

TEST_F(SystemResolverTest, LookupsAtOnceAreBounded) {
  std::vector<std::unique_ptr<Resolver::Lookup>> lookups;
  size_t called = 0, refused = 0;
  for (size_t i = 0; i < SystemResolver::kMostLookups + 5; ++i)
    lookups.push_back(resolver.look_up("n" + std::to_string(i) + ".example.com", [&](const auto& answer) {
      ++called;
      refused += !answer && answer.error().message.find("too many") != std::string::npos;
    }));
  EXPECT_EQ(called, 0u) << "called before look_up() returned";
  EXPECT_TRUE(run_until(loop, [&] { return called == lookups.size(); }));
  EXPECT_EQ(refused, 5u);
}

// Answers of a child that has locked itself down as the egress process does: 0 when they are right.
int resolve_locked_down() {
  Loop loop;
  FakeGuard guard;
  guard.names = {"up.example.com"};
  AddressBook book;
  NameAnswers answers(guard, book, [](const Crossing&) {});
  const DnsServer upstream(loop, at_port_53(SOCK_DGRAM), at_port_53(SOCK_STREAM), answers);
  if (!keep_to_itself(64) || !lock_down(SystemResolver::files())) return 2;
  SystemResolver resolver(loop);
  int status = 0, left = 3;
  const auto expect = [&](const std::string& expected) {
    return [&, expected](const Result<std::vector<codec::Address>>& answer) {
      if ((answer ? answer->front().to_string() : answer.error().code) != expected) status |= 1 << (2 + left);
      if (--left == 0) loop.stop();
    };
  };
  const auto by_dns = resolver.look_up("up.example.com", expect("198.18.1.1"));
  const auto by_file = resolver.look_up("fixed.example.com", expect("1.2.3.9"));
  const auto none = resolver.look_up("nx.example.com", expect("egress.unresolved"));
  loop.run();
  return status;
}

TEST_F(SystemResolverTest, ALockedDownProcessResolvesAsBefore) {
  upstream.reset();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(resolve_locked_down());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SystemResolverTest, TheFilesThatItReads) {
  EXPECT_THAT(SystemResolver::files(), Contains("/etc/hosts"));
  EXPECT_THAT(SystemResolver::files(), Contains("/etc/resolv.conf"));
}

}  // namespace
}  // namespace firestop::egress
