// Many connections at once, most of them doing nothing.
#include <sys/resource.h>

#include <fstream>

#include "egress/testing/carrier_lab.h"

namespace firestop::egress::testing {
namespace {

constexpr size_t kCrowd = 1500;

size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  }
  return 0;
}

void allow_many_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_F(CarrierLab, IdleAndHalfClosedConnectionsCostLittleAndAreFreed) {
  allow_many_descriptors();
  idle_ = std::chrono::milliseconds(1500);
  first_bytes_ = std::chrono::milliseconds(1500);
  start();
  std::vector<UniqueFd> crowd;
  size_t before = 0, at_most = 0;
  beside([&] {
    before = resident_kib();
    for (size_t i = 0; i < kCrowd; ++i) {
      crowd.push_back(guest());
      // A third says nothing, a third begins a request, a third closes its half behind one.
      if (i % 3 == 1) send_all(crowd.back(), "GET / HTTP/1.1\r\nHos");
      if (i % 3 == 2) {
        send_all(crowd.back(), "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b\r\n\r\n");
        ::shutdown(crowd.back().get(), SHUT_WR);
      }
    }
    at_most = resident_kib();
  });
  EXPECT_LT(at_most - before, kCrowd * 24) << "KiB";
  // Head time is 30 s: those that began a request are let go by their guests.
  for (size_t i = 1; i < kCrowd; i += 3) crowd[i].reset();
  settle();
  EXPECT_EQ(carrier_->connections(), 0u);
}

TEST_F(CarrierLab, ManyExchangesAtOnce) {
  allow_many_descriptors();
  constexpr size_t kAtOnce = 100;
  beside([&] {
    std::vector<UniqueFd> guests, origins;
    for (size_t i = 0; i < kAtOnce; ++i) {
      guests.push_back(guest());
      send_all(guests.back(), "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
    }
    std::vector<std::string> targets;
    for (size_t i = 0; i < kAtOnce; ++i) {
      origins.push_back(origin());
      const std::string head = received_until(origins.back(), "\r\n\r\n");
      targets.push_back(head.substr(4, head.find(' ', 4) - 4));
    }
    for (size_t i = 0; i < kAtOnce; ++i) {
      send_all(origins[i], "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(targets[i].size()) +
                               "\r\n\r\n" + targets[i]);
    }
    for (size_t i = 0; i < kAtOnce; ++i) {
      const std::string target = "/" + std::to_string(i);
      EXPECT_TRUE(received_until(guests[i], "\r\n\r\n" + target).ends_with("\r\n\r\n" + target))
          << "one's own answer";
    }
  });
  settle();
  EXPECT_EQ(crossings_.size(), kAtOnce);
}

TEST_F(CarrierLab, AnOriginThatTakesNoMoreConnectionsFailsThoseThatWait) {
  dialer_.failure = denial(502, "egress.unreachable", "refused");
  beside([&] {
    std::vector<UniqueFd> guests;
    for (size_t i = 0; i < 50; ++i) {
      guests.push_back(guest());
      send_all(guests.back(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    }
    for (const UniqueFd& one : guests) EXPECT_TRUE(received_until(one, "\r\n").starts_with("HTTP/1.1 502 "));
  });
  settle();
  EXPECT_LE(dialer_.dialled, 50);
}

}  // namespace
}  // namespace firestop::egress::testing
