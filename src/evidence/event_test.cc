#include "evidence/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firestop::evidence {
namespace {

const std::string kPrev(64, '0');

Event good() {
  Event event{.seq = 7, .time = "2026-11-29T20:10:11.123456Z", .mono_us = 12, .vantage = Vantage::kGuest};
  event.kind = "process.fork";
  event.data = codec::JsonObject{{"pid", 7}};
  event.prev = kPrev;
  return event;
}

TEST(EventTest, HasOneForm) {
  const std::string line = to_line(good()).value();
  EXPECT_EQ(line, "{\"data\":{\"pid\":7},\"kind\":\"process.fork\",\"mono_us\":12,\"prev\":\"" + kPrev +
                      "\",\"seq\":7,\"time\":\"2026-11-29T20:10:11.123456Z\",\"vantage\":\"guest\"}");
  EXPECT_EQ(to_line(parse_event(line).value()).value(), line);
}

TEST(EventTest, WhatIsNoneIsRefused) {
  const std::string line = to_line(good()).value();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string out = line;
    out.replace(out.find(from), from.size(), to);
    return out;
  };
  const std::string rows[] = {"",
                              "[]",
                              "null",
                              "{}",
                              " " + line,
                              line + " ",
                              line + line,
                              with("\"seq\":7", "\"seq\":-1"),
                              with("\"seq\":7", "\"seq\":7.5"),
                              with("\"seq\":7", "\"seq\":\"7\""),
                              with("\"seq\":7", "\"seq\":07"),
                              with("\"seq\":7", "\"seq\":9007199254740993"),
                              with("\"seq\":7", "\"seq\":7,\"sig\":1"),
                              with("\"seq\":7", "\"seq\":7,\"seq\":7"),
                              with("\"mono_us\":12", "\"mono_us\":-12"),
                              with("\"guest\"", "\"agent\""),
                              with("process.fork", "Process"),
                              with("process.fork", "process fork"),
                              with("process.fork", ""),
                              with(kPrev, kPrev.substr(1)),
                              with(kPrev, "A" + kPrev.substr(1)),
                              with("2026-11-29T", "2026-11-29 "),
                              with("456Z", "456+00:00"),
                              with("{\"pid\":7}", "[]"),
                              with("{\"pid\":7}", "{\"pid\":7.0}"),
                              with("{\"pid\":7}", "{\"z\":1,\"pid\":7}"),
                              with("{\"pid\":7}", "{\"pid\":\"\xff\"}"),
                              with("{\"pid\":7}", "{\"pid\":\"\\u0041\"}"),
                              with("{\"pid\":7}", std::string(40, '[') + std::string(40, ']'))};
  for (const auto& row : rows) {
    const auto event = parse_event(row);
    EXPECT_FALSE(event) << row;
    EXPECT_EQ(event ? "" : event.error().code, "evidence.bad_event") << row;
  }
}

TEST(EventTest, BytesComeBack) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (const std::string& bytes :
       {std::string(), std::string("plain \t\n \xc3\xa4"), all, std::string("\x1b[2J"),
        std::string("a\0b", 3), std::string("\xc2\x9b"), std::string("\x7f")})
    EXPECT_EQ(bytes_of(json_of_bytes(bytes)), bytes);
  EXPECT_TRUE(json_of_bytes("plain \t\n \xc3\xa4").as_string());
  // What a terminal would obey is no plain text.
  for (const std::string& bytes : {std::string("\x1b[2J"), std::string("\xc2\x9b"), std::string("\r")})
    EXPECT_FALSE(json_of_bytes(bytes).as_string());
  EXPECT_EQ(bytes_of(codec::JsonObject{{"base64", "!"}}), "");
  EXPECT_EQ(bytes_of(7), "");
}

}  // namespace
}  // namespace firestop::evidence
