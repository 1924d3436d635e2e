#include "codec/frame.h"

#include <gtest/gtest.h>

namespace firestop::codec {
namespace {

std::string encoded(FrameType type, uint16_t stream, std::string_view payload) {
  std::string out;
  append_frame(out, type, stream, payload);
  return out;
}

// The frame that is next; there must be one.
Frame only(FrameDecoder& decoder) {
  auto next = decoder.next();
  const std::optional<Frame> frame = next ? *next : std::nullopt;
  EXPECT_TRUE(frame.has_value());
  return frame.value_or(Frame{});
}

// Everything that comes out, one line a frame; the error's code at the end, if there is one.
std::string drain(FrameDecoder& decoder) {
  std::string out;
  while (true) {
    auto next = decoder.next();
    if (!next) return out + next.error().code;
    const std::optional<Frame>& frame = *next;
    if (!frame) return out;
    out += std::to_string(static_cast<int>(frame->type)) + "/" + std::to_string(frame->stream) + "/" +
           std::string(frame->payload) + "\n";
  }
}

TEST(Frame, LayoutIsAsDocumented) {
  EXPECT_EQ(encoded(FrameType::kData, 0x0102, "abc"), std::string("\x03\0\0\0\x02\0\x02\x01"
                                                                  "abc",
                                                                  11));
  std::string credit;
  append_credit(credit, 7, 0x01020304);
  EXPECT_EQ(credit, std::string("\x04\0\0\0\x04\0\x07\0\x04\x03\x02\x01", 12));
}

TEST(Frame, EverySplitGivesTheSameFrames) {
  std::string bytes = encoded(FrameType::kControl, 0, "{}") +
                      encoded(FrameType::kData, 1, std::string("\0x", 2)) + encoded(FrameType::kEnd, 1, "") +
                      encoded(FrameType::kData, 65535, "y");
  const std::string expected = std::string("1/0/{}\n2/1/") + std::string("\0x", 2) + "\n3/1/\n2/65535/y\n";
  for (size_t i = 0; i <= bytes.size(); ++i) {
    for (size_t j = i; j <= bytes.size(); ++j) {
      FrameDecoder decoder;
      std::string got;
      for (const std::string& piece : {bytes.substr(0, i), bytes.substr(i, j - i), bytes.substr(j)}) {
        decoder.feed(piece);
        got += drain(decoder);
      }
      ASSERT_EQ(got, expected) << i << " " << j;
    }
  }
  FrameDecoder decoder;
  std::string got;
  for (char c : bytes) {
    decoder.feed({&c, 1});
    got += drain(decoder);
  }
  EXPECT_EQ(got, expected);
}

TEST(Frame, ReadsWhatIsCompleteBeforeAskingForMore) {
  FrameDecoder decoder;
  decoder.feed(encoded(FrameType::kData, 1, "a") + encoded(FrameType::kData, 1, "b").substr(0, 5));
  EXPECT_EQ(drain(decoder), "2/1/a\n");
  EXPECT_EQ(drain(decoder), "");
  decoder.feed(encoded(FrameType::kData, 1, "b").substr(5));
  EXPECT_EQ(drain(decoder), "2/1/b\n");
}

TEST(Frame, CreditIsLittleEndian) {
  FrameDecoder decoder;
  std::string bytes;
  append_credit(bytes, 3, 0xfffefdfc);
  decoder.feed(bytes);
  EXPECT_EQ(only(decoder).credit(), 0xfffefdfcu);
}

TEST(Frame, TheLargestPayloadPasses) {
  FrameDecoder decoder;
  std::string payload(kMaxPayload, 'x');
  decoder.feed(encoded(FrameType::kData, 1, payload));
  EXPECT_EQ(only(decoder).payload, payload);
}

TEST(FrameDeathTest, TooLargeAPayloadIsNeverEncoded) {
  std::string out, payload(kMaxPayload + 1, 'x');
  EXPECT_DEATH(append_frame(out, FrameType::kData, 1, payload), "");
}

struct Bad {
  const char* why;
  std::string bytes;
};

std::string header(uint32_t length, int type, int zero, uint16_t stream) {
  std::string out;
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(length >> (8 * i)));
  out += {static_cast<char>(type), static_cast<char>(zero), static_cast<char>(stream),
          static_cast<char>(stream >> 8)};
  return out;
}

const Bad kBad[] = {
    {"one byte more than a payload may have", header(kMaxPayload + 1, 2, 0, 1)},
    {"length of 4 GiB: must not be waited for, nor allocated", header(UINT32_MAX, 2, 0, 1)},
    {"length whose sum with the header overflows 32 bits", header(UINT32_MAX - 7, 2, 0, 1)},
    {"type 0", header(0, 0, 0, 1)},
    {"a type that a later version may have", header(0, 5, 0, 1)},
    {"type 255", header(1, 255, 0, 1)},
    {"the reserved byte", header(1, 2, 1, 1)},
    {"control on a stream", header(2, 1, 0, 1)},
    {"empty control: no JSON", header(0, 1, 0, 0)},
    {"data on stream 0", header(1, 2, 0, 0)},
    {"empty data: work without bytes, no credit would bound it", header(0, 2, 0, 1)},
    {"end of stream 0", header(0, 3, 0, 0)},
    {"end with a payload", header(1, 3, 0, 1)},
    {"credit for stream 0", header(4, 4, 0, 0)},
    {"credit of 3 bytes", header(3, 4, 0, 1)},
    {"credit of 5 bytes", header(5, 4, 0, 1)},
    {"credit of nothing: work that no window bounds", header(4, 4, 0, 1) + std::string(4, '\0')},
    {"text instead of frames (a kernel message on the wrong port)", "[    0.000000] Linux version"},
};

TEST(Frame, MalformedIsRefusedAtTheHeaderAndForGood) {
  for (const Bad& bad : kBad) {
    FrameDecoder decoder;
    decoder.feed(bad.bytes);
    EXPECT_EQ(drain(decoder), "frame.bad") << bad.why;
    decoder.feed(encoded(FrameType::kData, 1, "good"));
    EXPECT_EQ(drain(decoder), "frame.bad") << "after: " << bad.why;
  }
}

TEST(Frame, GoodFramesBeforeTheBadOneComeOut) {
  FrameDecoder decoder;
  decoder.feed(encoded(FrameType::kData, 1, "a") + header(0, 9, 0, 1));
  EXPECT_EQ(drain(decoder), "2/1/a\nframe.bad");
}

// A stream that never stops and is fed in odd pieces: what was given out is let go, so the buffer stays where
// it is and small.
TEST(Frame, EndlessInputNeedsNoMoreThanAFrame) {
  FrameDecoder decoder;
  const std::string frame = encoded(FrameType::kData, 1, std::string(1000, 'x'));
  const std::string two = frame + frame;
  size_t frames = 0;
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (size_t fed = 0; fed < 8u << 20; fed += 777) {
    decoder.feed(std::string_view(two).substr(fed % frame.size(), 777));
    while (true) {
      auto next = decoder.next();
      ASSERT_TRUE(next);
      const std::optional<Frame>& got = *next;
      if (!got) break;
      if (++frames < 10) continue;
      low = std::min(low, reinterpret_cast<uintptr_t>(got->payload.data()));
      high = std::max(high, reinterpret_cast<uintptr_t>(got->payload.data()));
    }
  }
  EXPECT_EQ(frames, ((8u << 20) / 777 + 1) * 777 / frame.size());
  EXPECT_LT(high - low, 4 * frame.size());
}

}  // namespace
}  // namespace firestop::codec
