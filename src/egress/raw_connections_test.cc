#include "egress/raw_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "egress/host_dialer.h"
#include "egress/testing/fake_resolver.h"
#include "egress/testing/sockets.h"

namespace firestop::egress {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class RawConnectionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    route.to = {"git.example.com", port_of(listener)};
    route.rule = "egress[0]";
    route.connect_to = "127.0.0.1:" + std::to_string(port_of(listener));
    ends = [this] {
      UniqueFd theirs = client(SOCK_STREAM, port_of(doors));
      pollfd ready{doors.get(), POLLIN, 0};
      ::poll(&ready, 1, 10000);
      guest.socket = UniqueFd(::accept4(doors.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      return theirs;
    }();
    guest.asked = {"git.example.com", 22};
    guest.scheme = "tcp";
    guest.source_port = 40000;
  }

  Loop loop;
  FakeResolver resolver{loop};
  HostDialer dialer{loop, resolver};
  std::vector<Crossing> crossings;
  UniqueFd listener = bound(SOCK_STREAM), doors = bound(SOCK_STREAM), ends;
  Route route;
  RawConnections::Guest guest;
  RawConnections raw{loop, dialer, [this](const Crossing& crossing) { crossings.push_back(crossing); }};
};

TEST_F(RawConnectionsTest, DialledTunnelledAndRecorded) {
  auto place = std::make_shared<int>(0);
  const std::weak_ptr<int> held = place;
  guest.first = "hello ";
  guest.place = std::move(place);
  raw.start(std::move(guest), route);
  run_beside(loop, [&] {
    const UniqueFd origin = accepted(listener);
    send_all(ends, "world");
    ::shutdown(ends.get(), SHUT_WR);
    EXPECT_EQ(received_all(origin), "hello world");
    EXPECT_FALSE(held.expired());
    send_all(origin, "bye");
    ::shutdown(origin.get(), SHUT_WR);
    EXPECT_EQ(received_all(ends), "bye");
  });
  ASSERT_TRUE(run_until(loop, [&] { return !crossings.empty(); }));
  EXPECT_EQ(raw.size(), 0u);
  EXPECT_TRUE(held.expired());
  const Crossing& crossing = crossings[0];
  EXPECT_EQ(crossing.kind, Crossing::Kind::kConnection);
  EXPECT_EQ(crossing.verdict, "allowed");
  EXPECT_EQ(crossing.rule, "egress[0]");
  EXPECT_EQ(crossing.scheme, "tcp");
  EXPECT_EQ(crossing.host, "git.example.com");
  EXPECT_EQ(crossing.port, 22);
  EXPECT_EQ(crossing.address, route.connect_to);
  EXPECT_EQ(crossing.bytes_out, 11u);
  EXPECT_EQ(crossing.bytes_in, 3u);
  EXPECT_EQ(crossing.source_port, 40000);
}

TEST_F(RawConnectionsTest, WhatCannotBeReachedIsResetAndRecorded) {
  route.connect_to.clear();
  resolver.add("git.example.com", {"127.0.0.1"});
  raw.start(std::move(guest), route);
  run_beside(loop, [&] {
    char byte;
    EXPECT_LT(::recv(ends.get(), &byte, 1, 0), 0);
    EXPECT_EQ(errno, ECONNRESET);
  });
  ASSERT_EQ(crossings.size(), 1u);
  EXPECT_EQ(crossings[0].verdict, "denied");
  EXPECT_EQ(crossings[0].code, "egress.private_address");
  EXPECT_EQ(raw.size(), 0u);
}

TEST_F(RawConnectionsTest, TheEndOfAllIsRecorded) {
  {
    RawConnections some(loop, dialer, [this](const Crossing& crossing) { crossings.push_back(crossing); });
    some.start(std::move(guest), route);
  }
  ASSERT_EQ(crossings.size(), 1u);
  EXPECT_EQ(crossings[0].verdict, "failed");
}

TEST(ServerName, MustBeTheOneThatTheAddressWasGivenFor) {
  Route route;
  route.rule = "egress[3]";
  const Authority asked{"api.example.com", 443};
  codec::ClientHello hello;
  hello.server_name = "api.example.com";
  EXPECT_FALSE(server_name_differs(hello, route, asked));
  for (const char* other : {"", "evil.com", "example.com", "x.api.example.com", "api.example.com.evil.com"}) {
    hello.server_name = other;
    const auto denial = server_name_differs(hello, route, asked);
    ASSERT_TRUE(denial) << other;
    EXPECT_EQ(denial->code, "egress.host_mismatch");
    EXPECT_EQ(denial->rule, "egress[3]");
  }
}

}  // namespace
}  // namespace firestop::egress
