#include "codec/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace firestop::codec {
namespace {

using namespace std::string_view_literals;

Json parsed(std::string_view text) {
  auto value = parse_json(text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value ? *value : Json("parse failed");
}

std::string fault(std::string_view text) {
  auto value = parse_json(text);
  if (value) return "accepted as " + write_json(*value);
  EXPECT_EQ(value.error().code, "json.bad");
  return value.error().message;
}

TEST(Json, ParsesEachKind) {
  EXPECT_EQ(parsed(" {\"a\" : [null, true, false, -1, 2.5, \"x\"], \"b\":{}} \r\n\t"),
            Json(JsonObject{{"a", JsonArray{Json(), true, false, -1, 2.5, "x"}}, {"b", JsonObject{}}}));
  EXPECT_EQ(parsed("\"\\u0000\\u00e9\\ud83d\\ude00\\b\\f\\n\\r\\t\\/\\\\\\\"\""),
            Json("\0é😀\b\f\n\r\t/\\\""sv));
  EXPECT_EQ(parsed("[]"), Json(JsonArray{}));
  EXPECT_TRUE(parsed("null").is_null());
}

TEST(Json, NumbersAreExact) {
  EXPECT_EQ(parsed("9223372036854775807"), Json(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(parsed("-9223372036854775808"), Json(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(parsed("9223372036854775808"), Json(0x1p63)) << "no integer of 64 bits: a double";
  EXPECT_EQ(parsed("-9223372036854775809"), Json(-0x1p63));
  EXPECT_EQ(parsed("-0"), Json(0));
  EXPECT_TRUE(std::signbit(*parsed("-0.0").as_double()));
  EXPECT_EQ(parsed("1e2"), Json(100.0));
  EXPECT_EQ(parsed("5e-324"), Json(5e-324));
  EXPECT_EQ(parsed("1.7976931348623157e308"), Json(1.7976931348623157e308));
  // Rounded to the nearest, also where 64 bits of mantissa and a power of ten are not enough.
  EXPECT_EQ(parsed("0.500000000000000166533453693773481063544750213623046875"), Json(0.5000000000000002));
  EXPECT_EQ(parsed("3.5028003616896453e-291"), Json(3.5028003616896453e-291));
  EXPECT_EQ(parsed("2.2250738585072011e-308"), Json(2.2250738585072011e-308));
  EXPECT_EQ(parsed("6929495644600919.5"), Json(6929495644600920.0));
  EXPECT_EQ(parsed("123456789012345678901234567890.5e-3"), Json(1.2345678901234568e26));
}

TEST(Json, RefusesWhatIsNotJson) {
  struct {
    const char* why;
    std::string text;
  } table[] = {
      {"nothing", ""},
      {"white space only", " \n"},
      {"two documents", "1 2"},
      {"text after the end", "{}x"},
      {"a NUL after the end", std::string("{}\0", 3)},
      {"a comma at the end of a list", "[1,]"},
      {"a comma at the end of an object", "{\"a\":1,}"},
      {"no comma", "[1 2]"},
      {"no colon", "{\"a\" 1}"},
      {"a key that is no string", "{a:1}"},
      {"a number as key", "{1:1}"},
      {"single quotes", "'a'"},
      {"a comment", "/*x*/1"},
      {"a line comment", "1//x"},
      {"not closed", "[1"},
      {"object not closed", "{\"a\":1"},
      {"string not closed", "\"a"},
      {"closed with the other bracket", "[1}"},
      {"cut literal", "tru"},
      {"capital literal", "True"},
      {"NaN", "NaN"},
      {"Infinity", "Infinity"},
      {"negative infinity", "-Infinity"},
      {"leading zero: octal for some", "01"},
      {"negative leading zero", "-01"},
      {"leading plus", "+1"},
      {"no digit before the point", ".5"},
      {"no digit after the point", "1."},
      {"no digit in the exponent", "1e"},
      {"minus only", "-"},
      {"hexadecimal", "0x10"},
      {"beyond a double", "1e400"},
      {"beyond a double, below", "-1e400"},
      {"vanishes", "1e-400"},
      {"an exponent that overflows an int", "1e99999999999"},
      {"byte order mark", "\xef\xbb\xbf{}"},
      {"not UTF-8", "\"\x80\""},
      {"overlong slash", "\"\xc0\xaf\""},
      {"surrogate in UTF-8", "\"\xed\xa0\x80\""},
      {"above U+10FFFF", "\"\xf4\x90\x80\x80\""},
      {"cut UTF-8", "\"\xe2\x82\""},
      {"key that is not UTF-8", "{\"\xff\":1}"},
      {"UTF-16", std::string("\"\0a\0\"\0", 6)},
      {"line end in a string", "\"a\nb\""},
      {"tab in a string", "\"a\tb\""},
      {"NUL in a string", std::string("\"a\0b\"", 5)},
      {"unknown escape", "\"\\x41\""},
      {"short unicode escape", "\"\\u12\""},
      {"first surrogate alone", "\"\\ud800\""},
      {"second surrogate alone", "\"\\udc00\""},
      {"surrogates in the wrong order", "\"\\udc00\\ud800\""},
      {"duplicate key", "{\"a\":1,\"a\":1}"},
      {"duplicate key, spelled otherwise", "{\"a\":1,\"\\u0061\":2}"},
      {"duplicate key, deep", "[{\"x\":{\"k\":1,\"l\":2,\"k\":3}}]"},
      {"vertical tab as white space", "\v1"},
      {"no-break space",
       "\xc2\xa0"
       "1"},
  };
  for (const auto& row : table) {
    auto value = parse_json(row.text);
    ASSERT_FALSE(value) << row.why << ": accepted as " << write_json(*value);
    EXPECT_EQ(value.error().code, "json.bad") << row.why;
  }
}

TEST(Json, DepthIsBounded) {
  auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth)));
  EXPECT_EQ(fault(nested(kMaxJsonDepth + 1)), "1:33: nested too deeply");
  EXPECT_FALSE(parse_json(nested(1 << 20)));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(parse_json(objects));
}

TEST(Json, ErrorsHaveAPosition) {
  EXPECT_EQ(fault("{\"a\":1,\n \"é\":2,\n \"é\":3}"), "3:4: duplicate key");
  EXPECT_EQ(fault("[1,\n2,,3]"), "2:3: syntax error");
  EXPECT_EQ(fault("{} x"), "1:4: something after the end of the document");
  EXPECT_EQ(fault("[\"a\", \"b\""), "1:10: the document is not complete");
  EXPECT_EQ(fault("[1e999]"), "1:7: number out of range");
}

TEST(Json, WritesOneLineSortedByBytes) {
  Json value(JsonObject{
      {"b", JsonArray{1, -2.5, true, Json()}}, {"a", "x"}, {"B", JsonObject{}}, {"é", JsonArray{}}});
  EXPECT_EQ(write_json(value), R"({"B":{},"a":"x","b":[1,-2.5,true,null],"é":[]})");
  EXPECT_EQ(write_json_pretty(value), R"({
  "B": {},
  "a": "x",
  "b": [
    1,
    -2.5,
    true,
    null
  ],
  "é": []
}
)");
}

TEST(Json, WrittenValuesComeBack) {
  for (const Json& value :
       {Json(3.0), Json(3), Json(-0.0), Json(1e21), Json(1e-7), Json(0.1), Json(5e-324), Json(1e300),
        Json(std::numeric_limits<int64_t>::min()), Json(std::numeric_limits<int64_t>::max()),
        Json("\0\x01\x1f\x7f\"\\/\n\r\t\b\f é 😀 \xe2\x80\xa8"sv), Json(""), Json()}) {
    EXPECT_EQ(parsed(write_json(value)), value) << write_json(value);
    EXPECT_EQ(parsed(write_json_pretty(value)), value);
  }
}

TEST(Json, WhatIsWrittenAlwaysParses) {
  EXPECT_EQ(write_json(Json(std::nan(""))), "null");
  EXPECT_EQ(write_json(Json(-INFINITY)), "null");
  EXPECT_EQ(write_json(Json("a\xff\xc0\xaf")), "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  for (int byte = 0; byte < 256; ++byte) {
    std::string text(1, static_cast<char>(byte));
    EXPECT_TRUE(parse_json(write_json(Json(text)))) << byte;
  }
}

TEST(Json, AccessorsAnswerOnlyForTheirType) {
  Json value = parsed(R"({"s":"x","i":7,"b":true,"d":1.5})");
  EXPECT_EQ(value.string_or("s", "-"), "x");
  EXPECT_EQ(value.string_or("i", "-"), "-");
  EXPECT_EQ(value.string_or("none", "-"), "-");
  EXPECT_EQ(value.int_or("i", -1), 7);
  EXPECT_EQ(value.int_or("d", -1), -1);
  EXPECT_EQ(value.bool_or("b", false), true);
  EXPECT_EQ(value.bool_or("s", false), false);
  EXPECT_EQ(value.find("none"), nullptr);
  EXPECT_EQ(Json(JsonArray{}).find("s"), nullptr);
  EXPECT_EQ(Json(uint64_t{1} << 63), Json(0x1p63));
}

}  // namespace
}  // namespace firestop::codec
