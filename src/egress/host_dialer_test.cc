#include "egress/host_dialer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "egress/connect_race.h"
#include "egress/testing/fake_resolver.h"
#include "egress/testing/own_network.h"
#include "egress/testing/sockets.h"

namespace firestop::egress {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Outcome {
  std::optional<Dialled> dialled;
  std::optional<Denial> denial;
  bool any() const { return dialled || denial; }
};

class HostDialerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { (void)enter_own_network(); }
  void SetUp() override {
    if (!enter_own_network().empty())
      GTEST_SKIP() << "this host gives no network of our own: " << enter_own_network();
    listener = bound(SOCK_STREAM);
    port = port_of(listener);
  }

  Route route(const std::string& host) const {
    Route out;
    out.to = {host, port};
    out.rule = "egress[2]";
    return out;
  }
  Outcome dial(const Route& to) {
    HostDialer dialer(loop, resolver, proxy, times);
    Outcome outcome;
    const auto attempt = dialer.dial(
        to, [&](Dialled dialled) { outcome.dialled = std::move(dialled); },
        [&](Denial denial) { outcome.denial = std::move(denial); });
    EXPECT_FALSE(outcome.any()) << "called before dial() returned";
    EXPECT_TRUE(run_until(loop, [&] { return outcome.any(); }));
    EXPECT_NE(outcome.dialled.has_value(), outcome.denial.has_value());
    return outcome;
  }
  // "dialled ADDRESS" or "STATUS CODE".
  std::string result_of(const Route& to) {
    const Outcome outcome = dial(to);
    if (outcome.dialled) return "dialled " + outcome.dialled->address;
    EXPECT_EQ(outcome.denial->rule, "egress[2]");
    EXPECT_NE(outcome.denial->message, "");
    return std::to_string(outcome.denial->status) + " " + outcome.denial->code;
  }
  std::string at(const char* address) const {
    return "dialled " + codec::Address::parse(address)->with_port(port);
  }
  bool nobody_came() const {
    const UniqueFd came(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return !came.valid();
  }

  Loop loop;
  FakeResolver resolver{loop};
  HostProxy proxy;
  // Long, since the machine may be busy; tests of silence make theirs short.
  DialTimes times{.resolve = 15s, .connect = 15s, .stagger = 50ms, .proxy = 15s};
  UniqueFd listener;
  uint16_t port = 0;
};

TEST_F(HostDialerTest, TheAddressThatTheNameHas) {
  resolver.add("api.example.com", {kPublic});
  const Outcome outcome = dial(route("api.example.com"));
  ASSERT_TRUE(outcome.dialled);
  EXPECT_EQ("dialled " + outcome.dialled->address, at(kPublic));
  EXPECT_NE(::fcntl(outcome.dialled->socket.get(), F_GETFL) & O_NONBLOCK, 0);
  const UniqueFd other = accepted(listener);
  ASSERT_TRUE(other.valid());
  send_all(outcome.dialled->socket, "hello");
  EXPECT_EQ(received(other, 5), "hello");
}

TEST_F(HostDialerTest, inv07_ANameThatLeadsToNoPublicAddressIsNotDialled) {
  const char* addresses[] = {"0.0.0.0",
                             "127.0.0.1",
                             "127.255.255.255",
                             "10.9.8.7",
                             "172.31.0.1",
                             "192.168.0.1",
                             "100.64.0.1",
                             "169.254.169.254",
                             "198.18.1.1",
                             "192.0.0.8",
                             "192.0.2.1",
                             "224.0.0.1",
                             "255.255.255.255",
                             "::",
                             "::1",
                             "::ffff:127.0.0.1",
                             "::ffff:1.2.3.4",
                             "64:ff9b::7f00:1",
                             "64:ff9b::1.2.3.4",
                             "2002:7f00:1::1",
                             "fd00::1",
                             "fe80::1",
                             "ff02::1",
                             "2001:db8::1"};
  for (const char* address : addresses) {
    resolver.add(address + std::string(".example.com"), {address});
    EXPECT_EQ(result_of(route(address + std::string(".example.com"))), "403 egress.private_address")
        << address;
  }
  EXPECT_TRUE(nobody_came());
}

TEST_F(HostDialerTest, inv07_WithPrivateAlsoTheHostsNetworksAndStillNeverTheHost) {
  resolver.add("intranet.example.com", {kPrivate});
  Route to = route("intranet.example.com");
  const Outcome outcome = dial(to);
  ASSERT_TRUE(outcome.denial);
  EXPECT_THAT(outcome.denial->message, HasSubstr("10.9.8.7, a private address"));
  EXPECT_THAT(outcome.denial->what_to_do, HasSubstr("private: true"));
  to.private_addresses = true;
  EXPECT_EQ(result_of(to), at(kPrivate));
  for (const char* address :
       {"127.0.0.1", "::1", "0.0.0.0", "::", kMetadata, "198.18.1.1", "::ffff:10.9.8.7", "224.0.0.1"}) {
    resolver.add(address + std::string(".example.com"), {address});
    to.to.host = address + std::string(".example.com");
    EXPECT_EQ(result_of(to), "403 egress.private_address") << address;
  }
}

TEST_F(HostDialerTest, inv07_OfTwoAnswersThePublicOneIsDialledWhateverTheOrder) {
  resolver.add("one.example.com", {kPublic, kPrivate});
  resolver.add("two.example.com", {kPrivate, "127.0.0.1", kPublic, kMetadata});
  EXPECT_EQ(result_of(route("one.example.com")), at(kPublic));
  EXPECT_EQ(result_of(route("two.example.com")), at(kPublic));
  EXPECT_TRUE(accepted(listener).valid() && accepted(listener).valid());

  // Also when the public one does not answer: the private one listens, and nobody comes.
  resolver.add("three.example.com", {"9.9.9.9", kPrivate, "127.0.0.1"});
  EXPECT_EQ(result_of(route("three.example.com")), "502 egress.unreachable");
  EXPECT_TRUE(nobody_came());
}

TEST_F(HostDialerTest, inv07_ANameThatChangesItsAddressIsJudgedEachTimeAndAskedOnce) {
  resolver.add("rebind.example.com", {kPublic});
  resolver.add("rebind.example.com", {"127.0.0.1"});
  EXPECT_EQ(result_of(route("rebind.example.com")), at(kPublic));
  EXPECT_THAT(resolver.asked, ElementsAre("rebind.example.com"));
  EXPECT_TRUE(accepted(listener).valid());
  EXPECT_EQ(result_of(route("rebind.example.com")), "403 egress.private_address");
  EXPECT_EQ(resolver.asked.size(), 2u);
  EXPECT_TRUE(nobody_came());
}

TEST_F(HostDialerTest, AddressesInTheNamesPlace) {
  EXPECT_EQ(result_of(route(kPublic)), at(kPublic));
  EXPECT_EQ(result_of(route(kPrivate)), "403 egress.private_address");
  Route to = route(kPrivate);
  to.private_addresses = true;
  EXPECT_EQ(result_of(to), at(kPrivate));
  to.to.host = kMetadata;
  EXPECT_EQ(result_of(to), at(kMetadata)) << "a rule for this very network says so";
  EXPECT_THAT(resolver.asked, IsEmpty());
  for (const char* odd : {"2130706433", "0x7f000001", "127.1", "0177.0.0.1"}) {
    to.to.host = odd;
    EXPECT_EQ(result_of(to), "403 egress.bad_request") << odd;
  }
  EXPECT_THAT(resolver.asked, IsEmpty());
}

TEST_F(HostDialerTest, WhereTheOperatorSaysNobodyIsAsked) {
  Route to = route("api.example.com");
  to.connect_to = "127.0.0.1:" + std::to_string(port);
  to.to.port = 443;
  EXPECT_EQ(result_of(to), at("127.0.0.1"));
  EXPECT_THAT(resolver.asked, IsEmpty());
  for (const char* bad : {"127.0.0.1", "localhost:443", ":443", "127.1:443", "[::1]", "1.2.3.4:0"}) {
    to.connect_to = bad;
    EXPECT_EQ(result_of(to), "502 egress.unreachable") << bad;
  }
}

TEST_F(HostDialerTest, NamesThatDoNotExistAndResolversThatDoNotAnswer) {
  EXPECT_EQ(result_of(route("nx.example.com")), "502 egress.unresolved");
  resolver.add_silent("slow.example.com");
  times.resolve = 50ms;
  EXPECT_EQ(result_of(route("slow.example.com")), "504 egress.unresolved");
}

TEST_F(HostDialerTest, RefusedIsSaidAtOnceAndSilentWithinTheLimit) {
  resolver.add("refused.example.com", {kPublic, kOtherPublic});
  Route to = route("refused.example.com");
  to.to.port = 1;
  const Outcome refused = dial(to);
  ASSERT_TRUE(refused.denial);
  EXPECT_EQ(refused.denial->status, 502);
  EXPECT_THAT(refused.denial->message, HasSubstr("Connection refused"));

  // A full queue: its kernel drops what comes.
  const UniqueFd full = bound(SOCK_STREAM);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 4; ++i) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_of(full));
    ::inet_pton(AF_INET, kPublic, &address.sin_addr);
    (void)::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    waiting.push_back(std::move(socket));
  }
  resolver.add("silent.example.com", {kPublic});
  to = route("silent.example.com");
  to.to.port = port_of(full);
  times.connect = 300ms;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(result_of(to), "504 egress.unreachable");
  EXPECT_GE(std::chrono::steady_clock::now() - begun + 10ms, times.connect) << "libuv counts whole ms";
}

TEST_F(HostDialerTest, AnAddressThatDoesNotAnswerDoesNotHoldUpTheNext) {
  resolver.add("api.example.com", {kPublicV6, "2606:4700::2", kPublic});
  EXPECT_EQ(result_of(route("api.example.com")), at(kPublic)) << "nobody listens by IPv6, or there is none";
  const UniqueFd v6 = bound_v6(port);
  EXPECT_EQ(result_of(route("api.example.com")), at(kPublicV6)) << "the resolver's order counts";
}

TEST_F(HostDialerTest, ByTurns) {
  std::vector<codec::Address> all;
  for (const char* address : {"2606::1", "2606::2", "2606::3", "1.1.1.1", "1.1.1.2"})
    all.push_back(*codec::Address::parse(address));
  std::vector<std::string> order;
  for (const auto& address : by_turns(all, 4)) order.push_back(address.to_string());
  EXPECT_THAT(order, ElementsAre("2606::1", "1.1.1.1", "2606::2", "1.1.1.2"));
  EXPECT_EQ(by_turns(all, 100).size(), 5u);
  EXPECT_THAT(by_turns({}, 4), IsEmpty());
}

TEST_F(HostDialerTest, AnAttemptThatIsGivenUpCallsNobody) {
  resolver.add("api.example.com", {kPublic});
  for (const char* host : {"api.example.com", "nx.example.com", kPublic, kPrivate}) {
    HostDialer dialer(loop, resolver);
    auto attempt = dialer.dial(route(host), [](Dialled) { ADD_FAILURE(); }, [](Denial) { ADD_FAILURE(); });
    attempt.reset();
  }
  const auto end = loop.once(20ms, [&] { loop.stop(); });
  loop.run();
}

TEST_F(HostDialerTest, TheCallbackMayEndTheAttempt) {
  resolver.add("api.example.com", {kPublic});
  for (const char* host : {"api.example.com", "nx.example.com"}) {
    HostDialer dialer(loop, resolver);
    std::unique_ptr<Dialer::Attempt> attempt;
    bool done = false;
    attempt = dialer.dial(
        route(host), [&](Dialled) { attempt.reset(), done = true; },
        [&](Denial) { attempt.reset(), done = true; });
    EXPECT_TRUE(run_until(loop, [&] { return done; }));
  }
}

// The host's own proxy, a thread that says what it is told to.
class ThroughAProxy : public HostDialerTest {
 protected:
  void SetUp() override {
    HostDialerTest::SetUp();
    if (IsSkipped()) return;
    use("http://user:pass@127.0.0.1:" + std::to_string(port));
  }
  void use(const std::string& url) {
    auto made = HostProxy::from([&](const char* name) -> std::optional<std::string> {
      if (std::string_view(name) == "HTTPS_PROXY") return url;
      return std::nullopt;
    });
    ASSERT_TRUE(made);
    proxy = std::move(*made);
  }
  // Dials api.example.com:443 while the proxy answers with this.
  Outcome dial_while(const std::string& answer) {
    Outcome outcome;
    HostDialer dialer(loop, resolver, proxy, times);
    Route to = route("api.example.com");
    to.to.port = 443;
    const auto attempt = dialer.dial(
        to, [&](Dialled dialled) { outcome.dialled = std::move(dialled); },
        [&](Denial denial) { outcome.denial = std::move(denial); });
    run_beside(loop, [&] {
      const UniqueFd came = accepted(listener);
      asked = received_until(came, "\r\n\r\n");
      for (size_t at = 0; at < answer.size(); at += piece) {
        if (::send(came.get(), answer.data() + at, std::min(piece, answer.size() - at), MSG_NOSIGNAL) < 0)
          break;
        if (piece < answer.size()) ::usleep(1000);
      }
      if (keep_open) {
        kept = UniqueFd(::fcntl(came.get(), F_DUPFD_CLOEXEC, 0));
      }
    });
    EXPECT_TRUE(run_until(loop, [&] { return outcome.any(); }));
    return outcome;
  }

  std::string asked;
  size_t piece = SIZE_MAX;
  bool keep_open = true;
  UniqueFd kept;
};

TEST_F(ThroughAProxy, ItIsAskedToConnectAndNamesAreNotLookedUpHere) {
  for (const size_t size : {SIZE_MAX, size_t{1}}) {
    piece = size;
    const Outcome outcome = dial_while("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nfirst words");
    EXPECT_EQ(asked,
              "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n"
              "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n");
    ASSERT_TRUE(outcome.dialled);
    pollfd ready{outcome.dialled->socket.get(), POLLIN, 0};
    std::string words;
    while (words.size() < 11 && ::poll(&ready, 1, 10000) == 1) words += received(outcome.dialled->socket, 64);
    EXPECT_EQ(words, "first words") << "what the origin says first is not lost";
    EXPECT_THAT(outcome.dialled->address, HasSubstr("127.0.0.1:"));
  }
  EXPECT_THAT(resolver.asked, IsEmpty());
}

TEST_F(ThroughAProxy, ItsRefusalIsSaid) {
  const struct {
    const char *answer, *message;
  } table[] = {
      {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "login"},
      {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "(403)"},
      {"HTTP/1.0 503 \r\n\r\n", "(503)"},
      {"SSH-2.0-x\r\n\r\n", "does not speak HTTP"},
      {"HTTP/1.1 2x0 OK\r\n\r\n", "does not speak HTTP"},
      {"HTTP/1.1\r\n\r\n", "does not speak HTTP"},
  };
  for (const auto& row : table) {
    const Outcome outcome = dial_while(row.answer);
    ASSERT_TRUE(outcome.denial) << row.answer;
    EXPECT_EQ(outcome.denial->status, 502);
    EXPECT_EQ(outcome.denial->code, "egress.unreachable");
    EXPECT_THAT(outcome.denial->message, HasSubstr(row.message));
    EXPECT_THAT(outcome.denial->message, ::testing::Not(HasSubstr("pass")));
  }
  EXPECT_EQ(dial_while(std::string(20000, 'x')).denial->status, 502) << "bounded";
  times.proxy = 300ms;
  EXPECT_EQ(dial_while("HTTP/1.1 200 OK\r\n").denial->status, 504) << "half an answer";
  keep_open = false;
  times.proxy = 15s;
  EXPECT_EQ(dial_while("").denial->status, 502) << "closed";
}

TEST_F(ThroughAProxy, ItsNameIsLookedUpAndMayBePrivate) {
  use("http://proxy.corp.example:" + std::to_string(port));
  resolver.add("proxy.corp.example", {kPrivate});
  EXPECT_TRUE(dial_while("HTTP/1.1 200 OK\r\n\r\n").dialled);
  EXPECT_THAT(resolver.asked, ElementsAre("proxy.corp.example"));
}

TEST_F(ThroughAProxy, inv07_AddressesThatAreNotPublicDoNotReachIt) {
  for (const char* address : {"127.0.0.1", kPrivate, kMetadata})
    EXPECT_EQ(result_of(route(address)), "403 egress.private_address");
  EXPECT_EQ(result_of(route("127.1")), "403 egress.bad_request");
  EXPECT_TRUE(nobody_came());
}

}  // namespace
}  // namespace firestop::egress
