#include "egress/tunnel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "egress/testing/sockets.h"

namespace firestop::egress {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Two connected TCP sockets: ours is non-blocking, theirs blocking and patient.
struct Pair {
  Pair() {
    const UniqueFd listener = bound(SOCK_STREAM);
    theirs = client(SOCK_STREAM, port_of(listener));
    pollfd ready{listener.get(), POLLIN, 0};
    ::poll(&ready, 1, 10000);
    ours = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }
  UniqueFd ours, theirs;
};
std::string pattern(size_t size) {
  std::string out(size, '\0');
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 31 >> 3);
  return out;
}
bool was_reset(const UniqueFd& socket) {
  char byte;
  return ::recv(socket.get(), &byte, 1, 0) < 0 && errno == ECONNRESET;
}

class TunnelTest : public ::testing::Test {
 protected:
  void make(std::string first = {}, Tunnel::Limits limits = {}) {
    tunnel = std::make_unique<Tunnel>(loop, std::move(guest.ours), std::move(origin.ours), std::move(first),
                                      std::move(limits), [this](const Tunnel::Sum& end) {
                                        sum = end;
                                        tunnel.reset();
                                      });
  }
  // Until the tunnel has ended and the others are done.
  void run(const std::function<void()>& others) {
    run_beside(loop, others);
    EXPECT_TRUE(run_until(loop, [&] { return sum.has_value(); }));
  }

  Loop loop;
  Pair guest, origin;
  std::unique_ptr<Tunnel> tunnel;
  std::optional<Tunnel::Sum> sum;
};

TEST_F(TunnelTest, BytesBothWaysAsTheyAreAndEachWayEndsOnItsOwn) {
  const std::string up = pattern(3'000'001), down = pattern(5'000'003);
  make("first ");
  run([&] {
    std::thread sender([&] {
      send_all(guest.theirs, up);
      ::shutdown(guest.theirs.get(), SHUT_WR);
    });
    EXPECT_EQ(received_all(origin.theirs), "first " + up);
    sender.join();
    std::thread answer([&] {  // after the guest's end
      send_all(origin.theirs, down);
      ::shutdown(origin.theirs.get(), SHUT_WR);
    });
    EXPECT_EQ(received_all(guest.theirs), down);
    answer.join();
  });
  EXPECT_EQ(sum->end, Tunnel::End::kOrderly);
  EXPECT_EQ(sum->out, 6 + up.size());
  EXPECT_EQ(sum->in, down.size());
}

TEST_F(TunnelTest, TheOriginMaySpeakFirstAndEndFirst) {
  make();
  run([&] {
    send_all(origin.theirs, "SSH-2.0-x\r\n");
    ::shutdown(origin.theirs.get(), SHUT_WR);
    EXPECT_EQ(received_all(guest.theirs), "SSH-2.0-x\r\n");
    send_all(guest.theirs, "late words");
    ::shutdown(guest.theirs.get(), SHUT_WR);
    EXPECT_EQ(received_all(origin.theirs), "late words");
  });
  EXPECT_EQ(sum->end, Tunnel::End::kOrderly);
}

TEST_F(TunnelTest, inv05_WhoDoesNotReadHoldsUpTheOther) {
  make();
  size_t sent = 0;
  run([&] {
    const std::string piece = pattern(1 << 16);
    for (int quiet = 0; quiet < 30;) {
      const ssize_t now = ::send(guest.theirs.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      quiet = now > 0 ? 0 : quiet + 1;
      sent += static_cast<size_t>(std::max<ssize_t>(now, 0));
      if (now < 0) std::this_thread::sleep_for(5ms);
      ASSERT_LT(sent, 200u << 20) << "taken without end";
    }
    ::shutdown(guest.theirs.get(), SHUT_WR);
    EXPECT_EQ(received_all(origin.theirs).size(), sent) << "nothing is lost";
    ::shutdown(origin.theirs.get(), SHUT_WR);
    EXPECT_EQ(received_all(guest.theirs), "");
  });
  EXPECT_EQ(sum->out, sent);
}

TEST_F(TunnelTest, AResetIsPassedOn) {
  make();
  run([&] {
    send_all(guest.theirs, "x");
    EXPECT_EQ(received(origin.theirs, 1), "x");
    const linger now{1, 0};
    ::setsockopt(origin.theirs.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    origin.theirs.reset();
    EXPECT_TRUE(was_reset(guest.theirs)) << "an end would look like a whole answer";
  });
  EXPECT_EQ(sum->end, Tunnel::End::kBroken);
}

TEST_F(TunnelTest, IdleTunnelsEndAndHalfClosedOnesSooner) {
  make("", {.idle = 10min, .half_closed = 100ms});
  run([&] {
    ::shutdown(guest.theirs.get(), SHUT_WR);
    EXPECT_EQ(received_all(origin.theirs), "");
    EXPECT_TRUE(was_reset(guest.theirs));
  });
  EXPECT_EQ(sum->end, Tunnel::End::kIdle);
}

TEST_F(TunnelTest, IdleTunnelsEnd) {
  make("", {.idle = 100ms, .half_closed = 10min});
  run([&] { EXPECT_TRUE(was_reset(guest.theirs)); });
  EXPECT_EQ(sum->end, Tunnel::End::kIdle);
}

TEST_F(TunnelTest, inv05_WhatIsSpentEndsIt) {
  uint64_t left = 100'000;
  make("12345", {.spend = [&left](uint64_t bytes) {
         if (bytes > left) return false;
         left -= bytes;
         return true;
       }});
  run([&] {
    std::string got;
    std::thread reader([&] { got = received_all(origin.theirs); });
    const std::string much = pattern(1'000'000);
    for (size_t at = 0; at < much.size();) {
      const ssize_t now = ::send(guest.theirs.get(), much.data() + at, much.size() - at, MSG_NOSIGNAL);
      if (now <= 0) break;
      at += static_cast<size_t>(now);
    }
    reader.join();
    EXPECT_LE(got.size(), 100'000u);
  });
  EXPECT_EQ(sum->end, Tunnel::End::kLimit);
}

TEST_F(TunnelTest, NothingIsForwardedWhenTheFirstBytesAreTooMany) {
  make("12345", {.spend = [](uint64_t) { return false; }});
  run([&] { EXPECT_TRUE(was_reset(origin.theirs)); });
  EXPECT_EQ(sum->end, Tunnel::End::kLimit);
}

// A side that has ended stays "hung up" for ever: waiting for the other must not turn the loop round and
// round.
TEST_F(TunnelTest, AHalfClosedTunnelCostsNoTime) {
  make();
  run([&] {
    ::shutdown(guest.theirs.get(), SHUT_WR);
    EXPECT_EQ(received_all(origin.theirs), "");
    timespec before{}, after{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    std::this_thread::sleep_for(300ms);
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const auto used = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1'000'000;
    EXPECT_LT(used, 100) << "milliseconds of processor in 300";
    ::shutdown(origin.theirs.get(), SHUT_WR);
    EXPECT_EQ(received_all(guest.theirs), "");
  });
  EXPECT_EQ(sum->end, Tunnel::End::kOrderly);
}

TEST_F(TunnelTest, Destroyed) {
  make("x", {.spend = [](uint64_t) { return false; }});
  tunnel.reset();
  const auto stop = loop.once(20ms, [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(sum);
}

}  // namespace
}  // namespace firestop::egress
