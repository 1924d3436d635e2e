// RFC 8785 by its own examples.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "codec/json.h"

namespace firestop::codec {
namespace {

std::string canonical(std::string_view text) {
  auto value = parse_json(text);
  if (!value) return value.error().message;
  auto out = write_canonical_json(*value);
  return out ? *out : out.error().code;
}

TEST(CanonicalJson, NumbersOfAppendixB) {
  struct {
    uint64_t bits;
    const char* text;
  } table[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const auto& row : table) {
    auto value = std::bit_cast<double>(row.bits);
    EXPECT_EQ(write_ecmascript_number(value), row.text);
    auto out = write_canonical_json(Json(value));
    ASSERT_TRUE(out);
    EXPECT_EQ(*out, row.text);
    auto back = parse_json(row.text);  // and the text is that very number
    ASSERT_TRUE(back);
    EXPECT_EQ(back->as_int() ? static_cast<double>(*back->as_int()) : *back->as_double(), value) << row.text;
  }
  for (double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    auto out = write_canonical_json(Json(bad));
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, "json.not_canonical");
  }
}

TEST(CanonicalJson, IntegersAreExactOrRefused) {
  EXPECT_EQ(canonical("9007199254740992"), "9007199254740992");
  EXPECT_EQ(canonical("-9007199254740992"), "-9007199254740992");
  EXPECT_EQ(canonical("9007199254740993"), "json.not_canonical");
  EXPECT_EQ(canonical("-9007199254740993"), "json.not_canonical");
  EXPECT_EQ(canonical("[{\"a\":9223372036854775807}]"), "json.not_canonical");
}

TEST(CanonicalJson, ExampleOfSection322) {
  EXPECT_EQ(canonical(R"({
     "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
     "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
     "literals": [null, true, false]
   })"),
            R"({"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],)"
            R"("string":"€$\u000f\nA'B\"\\\\\"/"})");
}

TEST(CanonicalJson, SortsByUtf16AsInSection323) {
  EXPECT_EQ(canonical(R"({
     "\u20ac": "Euro Sign",
     "\r": "Carriage Return",
     "\ufb33": "Hebrew Letter Dalet With Dagesh",
     "1": "One",
     "\ud83d\ude00": "Emoji: Grinning Face",
     "\u0080": "Control",
     "\u00f6": "Latin Small Letter O With Diaeresis"
   })"),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
            "\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\","
            "\"😀\":\"Emoji: Grinning Face\",\"\xef\xac\xb3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

TEST(CanonicalJson, SortsPrefixesAndTheEndsOfThePlanes) {
  // U+FFFF, U+E000 and U+D7FF around the surrogates of U+10000 and U+10FFFF.
  EXPECT_EQ(
      canonical(R"({"\uffff":1,"\ue000":2,"\ud800\udc00":3,"\udbff\udfff":4,"\ud7ff":5,"":6,"a":7,"aa":8})"),
      "{\"\":6,\"a\":7,\"aa\":8,\"\xed\x9f\xbf\":5,\"\xf0\x90\x80\x80\":3,\"\xf4\x8f\xbf\xbf\":4,"
      "\"\xee\x80\x80\":2,\"\xef\xbf\xbf\":1}");
}

TEST(CanonicalJson, EscapesOnlyWhatMustBe) {
  EXPECT_EQ(canonical(R"("\u0000\u0008\t\n\u000b\f\r\u001f\"\\\/\u007f\u2028")"),
            "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\x7f\xe2\x80\xa8\"");
}

TEST(CanonicalJson, IsTheSameForEachSpelling) {
  EXPECT_EQ(canonical("{ \"b\" : 1.0 , \"a\" : [ ] }"), canonical("{\"a\":[],\"b\":1}"));
  EXPECT_EQ(canonical("[100, 1e2, 100.000]"), "[100,100,100]");
  EXPECT_EQ(canonical("{}"), "{}");
}

TEST(CanonicalJson, RefusesStringsThatAreNotUtf8) {
  EXPECT_FALSE(write_canonical_json(Json("\xff")));
  EXPECT_FALSE(write_canonical_json(Json(JsonObject{{"\xff", 1}, {"\xfe", 2}})));
}

}  // namespace
}  // namespace firestop::codec
