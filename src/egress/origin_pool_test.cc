// The pool by itself, where the order of what happens counts.
#include "egress/origin_pool.h"

#include <unistd.h>

#include "egress/testing/carrier_lab.h"

namespace firestop::egress::testing {
namespace {

using std::chrono::milliseconds;

struct Nobody : http::StreamReceiver {
  void on_data(std::string_view) override {}
  void on_end(http::Headers) override {}
  void on_abort(const std::string&) override {}
  void on_writable() override {}
};

// The time for the handshake is over just when the origin says what is no TLS, while the next request for it
// already waits: that one has its own connection, and its own end.
TEST_F(CarrierLab, AHandshakeThatIsTooLateTakesNobodyElseWithIt) {
  OriginPool pool(loop_, dialer_, *origin_tls_, milliseconds(40));
  const Route route{.to = {"a.example", 443}, .tls = true, .rule = "egress[0]"};
  const http::RequestHead head{.method = "GET", .scheme = "https", .authority = route.to, .target = "/"};
  Nobody nobody;
  std::vector<std::string> failed;
  std::unique_ptr<OriginPool::Attempt> first, second;
  first = pool.open(
      route, OriginPool::Wire::kAny, head, nobody, [](OriginPool::Opened) {},
      [&](const Denial& why) {
        failed.push_back(why.message);
        second = pool.open(
            route, OriginPool::Wire::kAny, head, nobody, [](OriginPool::Opened) {},
            [&](const Denial& next) { failed.push_back(next.message); });
      });
  UniqueFd origin;
  beside([&] { origin = this->origin(); });
  // Both are there when the loop comes round.
  bool slept = false;
  const auto sleep = loop_.once(milliseconds(5), [&] {
    send_all(origin, "220 this is no TLS\r\n");
    ::usleep(60'000);
    slept = true;
  });
  ASSERT_TRUE(run_until(loop_, [&] { return failed.size() == 1; }));
  EXPECT_TRUE(slept);
  UniqueFd again;
  beside([&] { again = this->origin(); });
  EXPECT_EQ(pool.connections(), 1u) << "its own";
  ASSERT_TRUE(run_until(loop_, [&] { return failed.size() == 2; }));
  EXPECT_EQ(failed[1], "a.example does not finish the TLS handshake");
  EXPECT_EQ(dialer_.dialled, 2);
}

}  // namespace
}  // namespace firestop::egress::testing
