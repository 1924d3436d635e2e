#include "sandbox/relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "base/file.h"

namespace firestop::sandbox {
namespace {

using std::chrono::milliseconds;

// A guest's end of the channel, in the same process.
class RelayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_.reset(ends[0]);
    write_.reset(ends[1]);
  }

  // Carries bytes both ways until both sides are quiet.
  void exchange() {
    while (!host_.pending().empty() || !guest_.pending().empty()) {
      carry(host_, guest_);
      carry(guest_, host_);
    }
  }
  static void carry(channel::Mux& from, channel::Mux& to) {
    const std::string bytes(from.pending());
    from.written(bytes.size());
    ASSERT_TRUE(to.receive(bytes));
  }

  Loop loop_;
  UniqueFd read_, write_;
  std::unique_ptr<Outflow> out_;
  std::unique_ptr<Inflow> in_;
  std::string guest_got_;
  bool guest_end_ = false;
  channel::Mux host_{{.on_control = [](std::string_view) {},
                      .on_data = [this](uint16_t, std::string_view d) { out_->data(d); },
                      .on_end = [this](uint16_t) { out_->end(); },
                      .on_writable = [this](uint16_t) { in_->writable(); }}};
  channel::Mux guest_{{.on_control = [](std::string_view) {},
                       .on_data =
                           [this](uint16_t s, std::string_view d) {
                             guest_got_ += d;
                             guest_.consumed(s, d.size());
                           },
                       .on_end = [this](uint16_t) { guest_end_ = true; },
                       .on_writable = [](uint16_t) {}}};
};

TEST_F(RelayTest, AReaderThatStopsReadingStopsTheGuestAtOneWindow) {
  guest_.open_send(2);
  out_ = std::make_unique<Outflow>(loop_, host_, 2, std::move(write_), [] {}, [] {});
  exchange();
  const std::string block(64u << 10, 'x');
  size_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    sent += guest_.send(2, block);
    auto stop = loop_.once(milliseconds(1), [&] { loop_.stop(); });
    exchange();
    loop_.run();
  }
  // One window in flight, and what the pipe itself took.
  EXPECT_GE(sent, channel::kWindow);
  EXPECT_LE(sent, channel::kWindow + (128u << 10));
  out_.reset();
}

TEST_F(RelayTest, EverythingArrivesBeforeTheEndIsReported) {
  guest_.open_send(2);
  bool done = false;
  out_ = std::make_unique<Outflow>(
      loop_, host_, 2, std::move(write_), [this] { exchange(); }, [&] { done = true; });
  exchange();
  ASSERT_EQ(guest_.send(2, std::string(300000, 'y')), 300000u);
  guest_.send_end(2);
  exchange();
  EXPECT_FALSE(done);
  std::string got;
  auto watch = loop_.watch(read_.get(), Loop::kReadable, [&](int) {
    char buffer[4096];
    const auto n = ::read(read_.get(), buffer, sizeof buffer);
    if (n > 0) got.append(buffer, static_cast<size_t>(n));
    if (n == 0) loop_.stop();
  });
  loop_.run();
  EXPECT_TRUE(done);
  EXPECT_EQ(got, std::string(300000, 'y'));
}

TEST_F(RelayTest, AGuestThatRanDryIsWokenWhenTheReaderHasRead) {
  guest_.open_send(2);
  out_ = std::make_unique<Outflow>(loop_, host_, 2, std::move(write_), [this] { exchange(); }, [] {});
  exchange();
  ASSERT_EQ(guest_.send(2, std::string(channel::kWindow + 1, 'x')), channel::kWindow);
  exchange();
  auto watch = loop_.watch(read_.get(), Loop::kReadable, [&](int) {
    char buffer[65536];
    ASSERT_GT(::read(read_.get(), buffer, sizeof buffer), 0);
    if (guest_.credit(2) > 0) loop_.stop();
  });
  auto limit = loop_.once(milliseconds(20000), [&] { loop_.stop(); });
  loop_.run();
  EXPECT_GT(guest_.credit(2), 0u);
}

TEST_F(RelayTest, AReaderThatWentAwayFreesTheGuest) {
  guest_.open_send(2);
  out_ = std::make_unique<Outflow>(
      loop_, host_, 2, std::move(write_), [this] { exchange(); }, [&] { loop_.stop(); });
  exchange();
  read_.reset();
  ASSERT_GT(guest_.send(2, "lost"), 0u);
  exchange();
  loop_.run();
  EXPECT_TRUE(out_->reader_gone());
  // What comes now is dropped and its credit given back, so that the guest is never stuck on us.
  size_t sent = 0;
  for (int i = 0; i < 40; ++i) {
    sent += guest_.send(2, std::string(64u << 10, 'z'));
    exchange();
  }
  EXPECT_EQ(sent, 40u * (64u << 10));
}

TEST_F(RelayTest, InputGoesOutAsCreditAllowsAndEnds) {
  in_ = std::make_unique<Inflow>(loop_, host_, 1, std::move(read_), [this] { exchange(); });
  ASSERT_TRUE(write_all(write_.get(), "hello"));
  write_.reset();
  guest_.open_receive(1);
  exchange();
  loop_.run();
  EXPECT_EQ(guest_got_, "hello");
  EXPECT_TRUE(guest_end_);
}

}  // namespace
}  // namespace firestop::sandbox
