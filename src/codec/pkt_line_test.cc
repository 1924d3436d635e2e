#include "codec/pkt_line.h"

#include <gtest/gtest.h>

namespace firestop::codec {
namespace {

// Everything that comes out: payloads in brackets, marks by their digits, "!" for an error.
std::string drain(PktLineReader& reader) {
  std::string out;
  while (true) {
    const auto next = reader.next();
    if (!next) return out + "!";
    if (!next->has_value()) return out;
    const PktLine& line = **next;
    switch (line.kind) {
      case PktLine::Kind::kData:
        out += "[" + std::string(line.payload) + "]";
        break;
      case PktLine::Kind::kFlush:
        out += "0000";
        break;
      case PktLine::Kind::kDelimiter:
        out += "0001";
        break;
      case PktLine::Kind::kResponseEnd:
        out += "0002";
        break;
    }
  }
}

std::string read(std::string_view bytes) {
  PktLineReader reader;
  reader.feed(bytes);
  return drain(reader);
}

TEST(PktLine, TheExamplesOfTheManualPage) {
  EXPECT_EQ(read("0006a\n"), "[a\n]");
  EXPECT_EQ(read("0005a"), "[a]");
  EXPECT_EQ(read("000bfoobar\n"), "[foobar\n]");
  EXPECT_EQ(read("0004"), "[]");
}

TEST(PktLine, MarksAndBothCasesOfDigits) {
  EXPECT_EQ(read("000000010002"), "000000010002");
  EXPECT_EQ(read("000Aabcdef000aghijkl"), "[abcdef][ghijkl]");
}

TEST(PktLine, EverySplitGivesTheSameLines) {
  std::string bytes = "0014command=ls-refs\n0001";
  append_pkt_line(bytes, std::string_view("\0\xffx\ny\n", 6));
  bytes += "00000004";
  const std::string expected = read(bytes);
  for (size_t i = 0; i <= bytes.size(); ++i) {
    for (size_t j = i; j <= bytes.size(); ++j) {
      PktLineReader reader;
      std::string got;
      for (const std::string& piece : {bytes.substr(0, i), bytes.substr(i, j - i), bytes.substr(j)}) {
        reader.feed(piece);
        got += drain(reader);
      }
      ASSERT_EQ(got, expected) << i << " " << j;
    }
  }
}

TEST(PktLine, WhatIsNone) {
  for (const char* bytes : {"0003", "000g", " 005", "+005", "-001", "0x05", "PACK", "fff1", "ffff",
                            "\xff\xff\xff\xff", "{\"op", "00 5", "00\n5"})
    EXPECT_EQ(read(bytes), "!") << bytes;
  EXPECT_EQ(read(std::string_view("00\0005a", 6)), "!");
}

TEST(PktLine, ALengthBeyondTheLimitIsRefusedBeforeItsPayloadComes) {
  EXPECT_EQ(read("fff0"), "");  // 65520: waits
  EXPECT_EQ(read("fff1"), "!");
  std::string longest;
  append_pkt_line(longest, std::string(kMostPktPayload, 'x'));
  EXPECT_TRUE(longest.starts_with("fff0"));
  EXPECT_EQ(read(longest).size(), kMostPktPayload + 2);
  EXPECT_DEATH(append_pkt_line(longest, std::string(kMostPktPayload + 1, 'x')), "");
}

TEST(PktLine, ItStaysBroken) {
  PktLineReader reader;
  reader.feed("0005a00030005b");
  EXPECT_EQ(drain(reader), "[a]!");
  reader.feed("0005c");
  EXPECT_EQ(drain(reader), "!");
  EXPECT_EQ(reader.rest(), "");
}

TEST(PktLine, WhatFollowsIsGivenAsItIs) {
  PktLineReader reader;
  reader.feed("0000PACK");
  EXPECT_EQ(reader.next()->value().kind, PktLine::Kind::kFlush);
  EXPECT_EQ(reader.rest(), "PACK");
}

TEST(PktLine, TextIsWithoutOneLineFeed) {
  EXPECT_EQ((PktLine{PktLine::Kind::kData, "a\n"}.text()), "a");
  EXPECT_EQ((PktLine{PktLine::Kind::kData, "a"}.text()), "a");
  EXPECT_EQ((PktLine{PktLine::Kind::kData, "a\n\n"}.text()), "a\n");
  EXPECT_EQ((PktLine{PktLine::Kind::kData, ""}.text()), "");
}

TEST(PktLine, WritingIsTheReverse) {
  std::string out;
  append_pkt_line(out, "hello\n");
  append_pkt_mark(out, PktLine::Kind::kDelimiter);
  append_pkt_line(out, "");
  append_pkt_mark(out, PktLine::Kind::kResponseEnd);
  append_pkt_mark(out, PktLine::Kind::kFlush);
  EXPECT_EQ(out, "000ahello\n0001000400020000");
  EXPECT_EQ(read(out), "[hello\n]0001[]00020000");
}

}  // namespace
}  // namespace firestop::codec
