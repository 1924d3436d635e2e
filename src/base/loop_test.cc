#include "base/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

namespace firestop {
namespace {

using std::chrono::milliseconds;

TEST(Loop, TimersFireInOrder) {
  Loop loop;
  std::string order;
  auto b = loop.once(milliseconds(20), [&] {
    order += 'b';
    loop.stop();
  });
  auto a = loop.once(milliseconds(1), [&] { order += 'a'; });
  loop.run();
  EXPECT_EQ(order, "ab");
}

TEST(Loop, ReportsReadableAndHangup) {
  Loop loop;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  std::string seen;
  Loop::Handle watch = loop.watch(ends[0], Loop::kReadable, [&](int) {
    char c;
    const auto n = ::read(ends[0], &c, 1);
    if (n == 1) {
      seen += c;
      ::close(ends[1]);
    } else {
      seen += '.';
      loop.stop();
    }
  });
  loop.run();
  EXPECT_EQ(seen, "x.");
  watch.reset();
  ::close(ends[0]);
}

TEST(Loop, EventsOfAWatchCanBeChanged) {
  Loop loop;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int writable = 0;
  Loop::Handle watch = loop.watch(ends[1], 0, [&](int events) {
    writable += (events & Loop::kWritable) != 0;
    loop.stop();
  });
  auto later = loop.once(milliseconds(1), [&] { watch->set_events(Loop::kWritable); });
  loop.run();
  EXPECT_EQ(writable, 1);
  watch.reset();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Loop, AWatchMayDestroyItself) {
  Loop loop;
  int calls = 0;
  Loop::Handle tick;
  tick = loop.every(milliseconds(1), [&] {
    ++calls;
    tick.reset();
  });
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST(Loop, WorkThatBlocksDoesNotHoldUpTheLoop) {
  Loop loop;
  std::string order;
  auto gate = std::make_shared<std::promise<void>>();
  const auto answer = std::make_shared<std::thread::id>();
  auto work = loop.offload(
      [gate, answer] {
        gate->get_future().wait();
        *answer = std::this_thread::get_id();
      },
      [&] {
        order += 'w';
        EXPECT_NE(*answer, std::this_thread::get_id());
        loop.stop();
      });
  auto timer = loop.once(milliseconds(1), [&] {
    order += 't';
    gate->set_value();
  });
  loop.run();
  EXPECT_EQ(order, "tw");
}

TEST(Loop, WorkThatNobodyWaitsForEndsQuietly) {
  const auto ran = std::make_shared<std::atomic<bool>>(false);
  {
    Loop loop;
    auto work = loop.offload(
        [ran] {
          std::this_thread::sleep_for(milliseconds(20));
          *ran = true;
        },
        [] { ADD_FAILURE() << "called without its handle"; });
    work.reset();
  }
  EXPECT_TRUE(*ran) << "the loop is gone, and its work is not";
}

TEST(Loop, LeavesNothingBehindWhenStoppedWhileItDoesNotRun) {
  // What is left is seen by the address sanitizer.
  Loop loop;
  auto timer = loop.every(std::chrono::hours(1), [] {});
  loop.stop();
  timer.reset();
}

}  // namespace
}  // namespace firestop
