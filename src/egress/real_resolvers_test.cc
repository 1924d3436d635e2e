// Our DNS server as real resolvers see it: the C library's, c-ares (in Node), and dig, where they are
// installed.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/process.h"
#include "egress/dns_server.h"
#include "egress/testing/fake_guard.h"
#include "egress/testing/own_network.h"
#include "egress/testing/sockets.h"

namespace firestop::egress {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

class RealResolvers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!enter_own_network().empty()) return;
    replace_file("/etc/nsswitch.conf", "hosts: files dns\n");
    replace_file("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:20 attempts:1\n");
  }
  void SetUp() override {
    if (!enter_own_network().empty())
      GTEST_SKIP() << "this host gives no network of our own: " << enter_own_network();
    server = std::make_unique<DnsServer>(loop, bound(SOCK_DGRAM, 53), bound(SOCK_STREAM, 53), answers);
    guard.names = {"api.example.com"};
  }
  // What it printed, and its status.
  std::string run_it(const std::vector<std::string>& argv) {
    std::string out;
    run_beside(loop, [&] {
      Command command;
      command.argv = argv;
      const auto ran = run(std::move(command), {.timeout = std::chrono::seconds(60)});
      out = ran ? ran->out + ran->err + "status " + std::to_string(ran->exit_code()) : ran.error().code;
    });
    return out;
  }

  Loop loop;
  FakeGuard guard;
  AddressBook book;
  std::vector<Crossing> crossings;
  NameAnswers answers{guard, book, [this](const Crossing& crossing) { crossings.push_back(crossing); }};
  std::unique_ptr<DnsServer> server;
};

TEST_F(RealResolvers, TheCLibrary) {
  // A and AAAA are asked at once; the empty answer to AAAA must not cost its 20 s of patience.
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THAT(run_it({"getent", "ahosts", "api.example.com"}), HasSubstr("198.18.1.1"));
  EXPECT_THAT(run_it({"getent", "ahosts", "evil.com"}), HasSubstr("status 2"));
  EXPECT_THAT(run_it({"getent", "hosts", "198.18.1.1"}), HasSubstr("api.example.com"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(15));
  for (const Crossing& crossing : crossings)
    EXPECT_NE(crossing.code, "egress.bad_request") << crossing.detail;
}

TEST_F(RealResolvers, CAres) {
  constexpr const char* kScript = R"(
const dns = require("dns").promises;
(async () => {
  for (const [host, type] of [["api.example.com", "A"], ["api.example.com", "AAAA"], ["evil.com", "A"]])
    console.log(host, type, await dns.resolve(host, type).then(String, (error) => error.code));
})();
)";
  const std::string out = run_it({"node", "-e", kScript});
  if (out == "process.not_found") GTEST_SKIP() << "node is not installed";
  EXPECT_THAT(out, HasSubstr("api.example.com A 198.18.1.1\n"));
  EXPECT_THAT(out, HasSubstr("api.example.com AAAA ENODATA\n"));
  EXPECT_THAT(out, HasSubstr("evil.com A ENOTFOUND\n"));
  for (const Crossing& crossing : crossings)
    EXPECT_NE(crossing.code, "egress.bad_request") << crossing.detail;
}

TEST_F(RealResolvers, Dig) {
  // Any server that is asked; by UDP with EDNS and a cookie, and by TCP.
  const std::string out = run_it({"dig", "@1.2.3.4", "api.example.com"});
  if (out == "process.not_found") GTEST_SKIP() << "dig is not installed";
  EXPECT_THAT(out, HasSubstr("198.18.1.1"));
  EXPECT_THAT(out, HasSubstr("status: NOERROR"));
  EXPECT_THAT(out, HasSubstr("udp: 1232"));
  EXPECT_THAT(out, Not(HasSubstr("WARNING")));
  EXPECT_THAT(run_it({"dig", "+tcp", "+short", "@1.2.3.4", "api.example.com"}), HasSubstr("198.18.1.1"));
  const std::string denied = run_it({"dig", "+dnssec", "@1.2.3.4", "evil.com", "HTTPS"});
  EXPECT_THAT(denied, HasSubstr("status: NXDOMAIN"));
  EXPECT_THAT(denied, HasSubstr("SOA"));
  EXPECT_THAT(run_it({"dig", "+edns=1", "+noednsneg", "@1.2.3.4", "api.example.com"}),
              HasSubstr("status: BADVERS"));
  EXPECT_THAT(run_it({"dig", "+short", "@1.2.3.4", "-x", "198.18.1.1"}), HasSubstr("api.example.com."));
}

}  // namespace
}  // namespace firestop::egress
