#include "sandbox/guest_sockets.h"

#include <gtest/gtest.h>

namespace firestop::sandbox {
namespace {

using Kind = egress::Crossing::Kind;

channel::observed::Connect socket(uint32_t pid, const char* protocol, uint16_t from, const char* address,
                                  uint16_t port) {
  return {pid, 1, protocol, from, address, port};
}

egress::Crossing crossing(Kind kind, const char* scheme, const char* host, uint16_t port, uint16_t from) {
  egress::Crossing out;
  out.kind = kind;
  out.scheme = scheme;
  out.host = host;
  out.port = port;
  out.source_port = from;
  return out;
}

class GuestSocketsTest : public testing::Test {
 protected:
  uint32_t who(Kind kind, const char* scheme, const char* host, uint16_t port, uint16_t from) {
    return sockets_.process_of(crossing(kind, scheme, host, port, from));
  }
  void answered(const char* host, const char* address) {
    auto name = crossing(Kind::kName, "dns", host, 0, 1);
    name.address = address;
    (void)sockets_.process_of(name);
  }
  GuestSockets sockets_;
};

TEST_F(GuestSocketsTest, TheNewestOfAPortCounts) {
  EXPECT_EQ(who(Kind::kConnection, "tcp", "192.0.2.1", 443, 40000), 0u);
  sockets_.take(socket(7, "tcp", 40000, "192.0.2.1", 443));
  EXPECT_EQ(who(Kind::kConnection, "tcp", "192.0.2.1", 443, 40000), 7u);
  sockets_.take(socket(8, "tcp", 40000, "192.0.2.1", 443));
  EXPECT_EQ(who(Kind::kRequest, "https", "192.0.2.1", 443, 40000), 8u);
  EXPECT_EQ(who(Kind::kRequest, "https", "192.0.2.1", 443, 40001), 0u);
  EXPECT_EQ(who(Kind::kRequest, "https", "192.0.2.1", 443, 0), 0u);
}

TEST_F(GuestSocketsTest, OnePortToSeveralPlaces) {
  answered("a.example", "198.18.0.1");
  answered("b.example", "198.18.0.2");
  sockets_.take(socket(1, "tcp", 40000, "198.18.0.1", 443));
  sockets_.take(socket(2, "tcp", 40000, "198.18.0.2", 443));
  sockets_.take(socket(3, "tcp", 40000, "198.18.0.2", 80));
  sockets_.take(socket(4, "tcp", 40000, "192.0.2.1", 443));
  sockets_.take(socket(5, "udp", 40000, "192.0.2.1", 443));
  sockets_.take(socket(6, "udp", 40000, "192.0.2.53", 53));
  EXPECT_EQ(who(Kind::kRequest, "https", "a.example", 443, 40000), 1u);
  EXPECT_EQ(who(Kind::kRequest, "https", "b.example", 443, 40000), 2u);
  EXPECT_EQ(who(Kind::kConnection, "tcp", "b.example", 80, 40000), 3u);
  EXPECT_EQ(who(Kind::kConnection, "tcp", "192.0.2.1", 443, 40000), 4u);
  EXPECT_EQ(who(Kind::kDatagram, "udp", "192.0.2.1", 443, 40000), 5u);
  EXPECT_EQ(who(Kind::kName, "dns", "c.example", 0, 40000), 6u);
  EXPECT_EQ(who(Kind::kAlarm, "dns", "d.example", 0, 40000), 6u);
  EXPECT_EQ(who(Kind::kConnection, "tcp", "192.0.2.2", 443, 40000), 0u);
}

TEST_F(GuestSocketsTest, inv05_LiesAreBounded) {
  sockets_.take(socket(1, "tcp", 40000, "no address", 443));
  sockets_.take(socket(0, "tcp", 40000, "192.0.2.1", 443));
  EXPECT_EQ(who(Kind::kConnection, "tcp", "192.0.2.1", 443, 40000), 0u);
  for (uint32_t pid = 1; pid <= GuestSockets::kMostOfPort + 1; ++pid)
    sockets_.take(socket(pid, "tcp", 40000, "192.0.2.1", static_cast<uint16_t>(pid)));
  EXPECT_EQ(who(Kind::kConnection, "tcp", "192.0.2.1", 1, 40000), 0u);
  EXPECT_EQ(who(Kind::kConnection, "tcp", "192.0.2.1", 2, 40000), 2u);
}

}  // namespace
}  // namespace firestop::sandbox
