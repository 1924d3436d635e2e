#include "channel/mux.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "channel/messages.h"

namespace firestop::channel {
namespace {

using codec::append_credit;
using codec::append_frame;
using codec::FrameType;

// One side, with what it was told.
struct Side {
  std::vector<std::string> controls;
  std::map<uint16_t, std::string> data;
  std::set<uint16_t> ended;
  std::vector<uint16_t> writable;
  Mux mux{{
      .on_control = [this](std::string_view json) { controls.emplace_back(json); },
      .on_data = [this](uint16_t stream, std::string_view bytes) { data[stream] += bytes; },
      .on_end = [this](uint16_t stream) { ended.insert(stream); },
      .on_writable = [this](uint16_t stream) { writable.push_back(stream); },
  }};

  std::string take() {
    std::string bytes(mux.pending());
    mux.written(bytes.size());
    return bytes;
  }
};

std::string code(const Result<void>& result) {
  return result ? "" : result.error().code;
}

void exchange(Side& a, Side& b) {
  while (!a.mux.pending().empty() || !b.mux.pending().empty()) {
    ASSERT_EQ(code(b.mux.receive(a.take())), "");
    ASSERT_EQ(code(a.mux.receive(b.take())), "");
  }
}

TEST(Mux, CarriesControlDataAndEnds) {
  Side a, b;
  a.mux.open_send(5);
  b.mux.open_receive(5);
  EXPECT_EQ(a.mux.send(5, "too early"), 0u) << "no credit yet";
  exchange(a, b);
  EXPECT_EQ(a.writable, std::vector<uint16_t>{5});
  EXPECT_EQ(a.mux.credit(5), kWindow);
  EXPECT_TRUE(a.mux.send_control("{}"));
  EXPECT_EQ(a.mux.send(5, "hello"), 5u);
  a.mux.send_end(5);
  a.mux.send_end(5);
  EXPECT_EQ(a.mux.send(5, "late"), 0u) << "after its end";
  EXPECT_EQ(a.mux.credit(5), 0u);
  exchange(a, b);
  EXPECT_EQ(b.controls, std::vector<std::string>{"{}"});
  EXPECT_EQ(b.data[5], "hello");
  EXPECT_TRUE(b.ended.count(5));
}

TEST(Mux, ASlowReaderStopsItsOwnStreamOnly) {
  Side a, b;
  for (uint16_t stream : {kStdin, kStdout}) {
    a.mux.open_send(stream);
    b.mux.open_receive(stream);
  }
  exchange(a, b);
  const std::string much(kWindow + 1000, 'x');
  EXPECT_EQ(a.mux.send(1, much), kWindow);
  EXPECT_EQ(a.mux.send(1, "y"), 0u);
  EXPECT_EQ(a.mux.send(2, "other"), 5u);
  EXPECT_TRUE(a.mux.send_control("{}"));
  a.writable.clear();
  exchange(a, b);
  EXPECT_EQ(b.data[1].size(), kWindow);
  EXPECT_EQ(b.data[2], "other");
  EXPECT_TRUE(a.writable.empty());

  b.mux.consumed(1, 1);  // a grant costs a frame: not for one byte
  EXPECT_TRUE(b.mux.pending().empty());
  b.mux.consumed(1, kWindow - 1);
  exchange(a, b);
  EXPECT_EQ(a.writable, std::vector<uint16_t>{1});
  EXPECT_EQ(a.mux.credit(1), kWindow);
}

TEST(Mux, ConsumingMoreThanCameGrantsNoMoreThanTheWindow) {
  Side a, b;
  a.mux.open_send(1);
  b.mux.open_receive(1);
  exchange(a, b);
  a.mux.send(1, std::string(kWindow / 2, 'x'));
  exchange(a, b);
  b.mux.consumed(1, SIZE_MAX);
  b.mux.consumed(9, 1);  // not open: nothing happens
  exchange(a, b);
  EXPECT_EQ(a.mux.credit(1), kWindow);
}

TEST(Mux, CallbacksMaySendAndOpen) {
  Mux* echo = nullptr;
  Mux b({.on_control = [&](std::string_view) { echo->open_receive(1); },
         .on_data =
             [&](uint16_t stream, std::string_view bytes) {
               echo->consumed(stream, bytes.size());
               ASSERT_TRUE(echo->send_control(bytes));
               echo->open_receive(2);
             },
         .on_end = [&](uint16_t) { ASSERT_TRUE(echo->send_control("end")); },
         .on_writable = {}});
  echo = &b;
  Side a;
  a.mux.open_send(1);
  a.mux.open_send(2);
  ASSERT_TRUE(a.mux.send_control("open"));
  auto step = [&] {
    std::string bytes = a.take();
    ASSERT_EQ(code(b.receive(bytes)), "");
    bytes = b.pending();
    b.written(bytes.size());
    ASSERT_EQ(code(a.mux.receive(bytes)), "");
  };
  step();
  a.mux.send(1, "x");
  a.mux.send_end(1);
  step();
  EXPECT_EQ(a.controls, (std::vector<std::string>{"x", "end"}));
  EXPECT_EQ(a.mux.credit(2), kWindow);
}

TEST(Mux, WithoutCallbacksNothingHappens) {
  Mux mux({});
  mux.open_receive(1);
  mux.open_send(2);
  std::string bytes;
  append_frame(bytes, FrameType::kControl, 0, "{}");
  append_frame(bytes, FrameType::kData, 1, "x");
  append_frame(bytes, FrameType::kEnd, 1, "");
  append_credit(bytes, 2, 1);
  EXPECT_EQ(code(mux.receive(bytes)), "");
}

TEST(Mux, ControlThatNoFrameHoldsIsRefused) {
  Side a;
  EXPECT_EQ(code(a.mux.send_control(std::string(codec::kMaxPayload + 1, ' '))), "channel.too_large");
  EXPECT_EQ(code(a.mux.send_control("")), "channel.too_large");
  EXPECT_TRUE(a.mux.pending().empty());
  EXPECT_EQ(code(a.mux.send_control(std::string(codec::kMaxPayload, ' '))), "");
}

std::string frame(FrameType type, uint16_t stream, std::string_view payload) {
  std::string out;
  append_frame(out, type, stream, payload);
  return out;
}

std::string data(uint16_t stream, size_t bytes) {
  std::string out;
  for (; bytes > 0; bytes -= std::min(bytes, codec::kMaxPayload))
    append_frame(out, FrameType::kData, stream, std::string(std::min(bytes, codec::kMaxPayload), 'x'));
  return out;
}

std::string credit(uint16_t stream, uint32_t bytes) {
  std::string out;
  append_credit(out, stream, bytes);
  return out;
}

std::string repeat(const std::string& text, size_t times) {
  std::string out;
  while (times-- > 0) out += text;
  return out;
}

// The victim receives on 1 and sends on 2.
TEST(Mux, Violations) {
  struct {
    const char *why, *code;
    std::string bytes;
  } table[] = {
      {"no frame", "channel.bad_frame", "\xff\xff\xff\xff\xff\xff\xff\xff"},
      {"data for a stream that is not open", "channel.bad_stream", data(3, 1)},
      {"data for a stream that goes the other way", "channel.bad_stream", data(2, 1)},
      {"the end of a stream that is not open", "channel.bad_stream", frame(FrameType::kEnd, 3, "")},
      {"the end of a stream that goes the other way", "channel.bad_stream", frame(FrameType::kEnd, 2, "")},
      {"credit for a stream that is not open", "channel.bad_stream", credit(3, 1)},
      {"credit for a stream that goes the other way", "channel.bad_stream", credit(1, 1)},
      {"data after the end", "channel.bad_stream", frame(FrameType::kEnd, 1, "") + data(1, 1)},
      {"two ends", "channel.bad_stream", repeat(frame(FrameType::kEnd, 1, ""), 2)},
      {"a byte above the window", "channel.over_credit", data(1, kWindow + 1)},
      {"a frame above the window", "channel.over_credit", data(1, kWindow - 1) + data(1, codec::kMaxPayload)},
      {"credit above a window", "channel.bad_credit", credit(2, kWindow + 1)},
      {"credit above a window, in two", "channel.bad_credit", credit(2, kWindow) + credit(2, 1)},
      {"credit that overflows 32 bits", "channel.bad_credit", credit(2, 1) + credit(2, UINT32_MAX)},
      {"the largest credit", "channel.bad_credit", credit(2, UINT32_MAX)},
      {"control without end", "channel.control_flood",
       repeat(frame(FrameType::kControl, 0, "{}"), kMaxControlBacklog + 1)},
  };
  for (const auto& row : table) {
    Side victim;
    victim.mux.open_receive(1);
    victim.mux.open_send(2);
    auto result = victim.mux.receive(row.bytes);
    EXPECT_EQ(code(result), row.code) << row.why;
    EXPECT_EQ(code(victim.mux.receive(data(1, 1))), "channel.bad_frame") << "broken for good: " << row.why;
  }
}

TEST(Mux, WhatIsAllowedJustBelowTheBounds) {
  Side victim;
  victim.mux.open_receive(1);
  victim.mux.open_send(2);
  EXPECT_EQ(code(victim.mux.receive(data(1, kWindow) + frame(FrameType::kEnd, 1, "") +
                                    credit(2, kWindow - 1) + credit(2, 1) +
                                    repeat(frame(FrameType::kControl, 0, "{}"), kMaxControlBacklog))),
            "");
  EXPECT_EQ(victim.controls.size(), kMaxControlBacklog);
}

// A guest that grants without reading: the data would pile up here.
TEST(Mux, NoCreditForWhatIsNotWritten) {
  Side victim;
  victim.mux.open_send(2);
  ASSERT_EQ(code(victim.mux.receive(credit(2, kWindow))), "");
  EXPECT_EQ(victim.mux.send(2, std::string(kWindow, 'x')), kWindow);
  EXPECT_EQ(code(victim.mux.receive(credit(2, 1))), "channel.bad_credit");

  Side good;
  good.mux.open_send(2);
  ASSERT_EQ(code(good.mux.receive(credit(2, kWindow))), "");
  EXPECT_EQ(good.mux.send(2, std::string(kWindow, 'x')), kWindow);
  good.mux.written(codec::kFrameHeader + codec::kMaxPayload + 100);  // a frame and a part of the next
  EXPECT_EQ(code(good.mux.receive(credit(2, codec::kMaxPayload))), "");
  EXPECT_EQ(code(good.mux.receive(credit(2, 1))), "channel.bad_credit");
}

TEST(Mux, CreditAfterTheEndIsInFlightAndHarmless) {
  Side a;
  a.mux.open_send(2);
  a.mux.send_end(2);
  EXPECT_EQ(code(a.mux.receive(credit(2, kWindow))), "");
  EXPECT_TRUE(a.writable.empty());
  EXPECT_EQ(a.mux.send(2, "x"), 0u);
}

TEST(Mux, PendingIsTheSameWhateverPiecesAreWritten) {
  for (size_t piece : {1000u, 70000u, 600000u}) {
    Side a;
    a.mux.open_send(1);
    ASSERT_EQ(code(a.mux.receive(credit(1, kWindow))), "");
    std::string sent;
    for (size_t i = 0; i < kWindow; ++i) sent.push_back(static_cast<char>(i * 31 >> 3));
    a.mux.send(1, sent);
    Side b;
    b.mux.open_receive(1);
    while (!a.mux.pending().empty()) {
      std::string_view bytes = a.mux.pending().substr(0, piece);
      ASSERT_EQ(code(b.mux.receive(bytes)), "");
      a.mux.written(bytes.size());
    }
    EXPECT_EQ(b.data[1], sent);
  }
}

// A connection of two sides whose bytes are cut anywhere, with readers that take what they like.
struct Wire {
  Side from, to;
  std::string in_flight, back;
  std::map<uint16_t, std::string> sent;
  std::map<uint16_t, size_t> consumed;

  void move(Mux& mux, std::string& wire, size_t bytes) {
    std::string_view piece = mux.pending().substr(0, bytes);
    wire += piece;
    mux.written(piece.size());
  }
  void deliver(std::string& wire, Mux& mux, size_t bytes) {
    auto result = mux.receive(std::string_view(wire).substr(0, bytes));
    RC_ASSERT(code(result) == "");
    wire.erase(0, bytes);
  }
};

RC_GTEST_PROP(MuxProperty, NothingIsLostReorderedOrBeyondTheWindow, ()) {
  Wire w;
  const std::vector<uint16_t> streams = {1, 2, 65535};
  for (uint16_t stream : streams) {
    w.from.mux.open_send(stream);
    w.to.mux.open_receive(stream);
  }
  std::vector<std::string> controls;
  uint8_t next = 0;
  const int steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) {
    const uint16_t stream = *rc::gen::elementOf(streams);
    const size_t size =
        *rc::gen::weightedOneOf<size_t>({{4, rc::gen::inRange<size_t>(1, 20)},
                                         {2, rc::gen::inRange<size_t>(1, 2 * codec::kMaxPayload)},
                                         {1, rc::gen::inRange<size_t>(1, 2 * kWindow)}});
    switch (*rc::gen::inRange(0, 6)) {
      case 0: {
        std::string bytes;
        for (size_t j = 0; j < size; ++j) bytes.push_back(static_cast<char>(next++));
        const size_t credit_before = w.from.mux.credit(stream);
        const size_t taken = w.from.mux.send(stream, bytes);
        RC_ASSERT(taken == std::min(size, credit_before));
        next = static_cast<uint8_t>(next - (size - taken));
        w.sent[stream] += bytes.substr(0, taken);
        break;
      }
      case 1:
        controls.push_back(std::string(size % codec::kMaxPayload + 1, 'c'));
        RC_ASSERT(code(w.from.mux.send_control(controls.back())) == "");
        break;
      case 2:
        w.move(w.from.mux, w.in_flight, size);
        break;
      case 3:
        w.deliver(w.in_flight, w.to.mux, size);
        break;
      case 4: {
        const size_t bytes = std::min(size, w.to.data[stream].size() - w.consumed[stream]);
        w.to.mux.consumed(stream, bytes);
        w.consumed[stream] += bytes;
        break;
      }
      default:
        w.move(w.to.mux, w.back, size);
        w.deliver(w.back, w.from.mux, size);
        break;
    }
    for (uint16_t s : streams) RC_ASSERT(w.sent[s].size() - w.consumed[s] <= kWindow);
    RC_ASSERT(w.to.mux.pending().size() <= 12 * 6 * streams.size());  // a few grants, never a queue of them
  }
  for (uint16_t stream : streams) w.from.mux.send_end(stream);
  w.move(w.from.mux, w.in_flight, SIZE_MAX);
  w.deliver(w.in_flight, w.to.mux, SIZE_MAX);
  for (uint16_t stream : streams) RC_ASSERT(w.to.data[stream] == w.sent[stream]);
  RC_ASSERT(w.to.controls == controls);
  RC_ASSERT(w.to.ended.size() == streams.size());
}

}  // namespace
}  // namespace firestop::channel
