#include "guest/evidence/btf.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace firestop::guest {
namespace {

void put(std::string& out, std::initializer_list<uint32_t> words) {
  for (const uint32_t word : words)
    for (int byte = 0; byte < 4; ++byte) out += static_cast<char>(word >> (8 * byte) & 0xff);
}

constexpr uint32_t info(uint32_t kind, uint32_t members, uint32_t bit_fields = 0) {
  return bit_fields << 31 | kind << 24 | members;
}

constexpr uint32_t kInt = 1, kStructure = 4, kUnion = 5, kFunction = 12, kPrototype = 13;

// Names, by their place in the strings.
const std::string kStrings = std::string("\0int\0outer\0plain\0deep\0call\0flag", 32);
constexpr uint32_t kNone = 0, kIntName = 1, kOuter = 5, kPlain = 11, kDeep = 17, kCall = 22, kFlag = 27;

// struct outer { int plain; union { struct { int; int deep; }; }; int flag : 3; }; int call(int plain);
std::string types() {
  std::string out;
  put(out, {kIntName, info(kInt, 0), 4, 32});                                  // 1
  put(out, {kNone, info(kStructure, 2), 8, kNone, 1, 0, kDeep, 1, 32});        // 2
  put(out, {kNone, info(kUnion, 1), 8, kNone, 2, 0});                          // 3
  put(out, {kOuter, info(kStructure, 3, 1), 16, kPlain, 1, 0, kNone, 3, 64});  // 4
  put(out, {kFlag, 1, 3u << 24 | 129});                                        //
  put(out, {kNone, info(kPrototype, 1), 1, kPlain, 1});                        // 5
  put(out, {kCall, info(kFunction, 0), 5});                                    // 6
  return out;
}

std::string btf(const std::string& types, const std::string& strings) {
  std::string out;
  put(out, {0x0001eb9f, 24, 0, static_cast<uint32_t>(types.size()), static_cast<uint32_t>(types.size()),
            static_cast<uint32_t>(strings.size())});
  return out + types + strings;
}

TEST(Btf, FindsFunctionsAndMembers) {
  const Btf kernel(btf(types(), kStrings));
  EXPECT_EQ(kernel.function("call"), 6u);
  EXPECT_EQ(kernel.function("cal"), 0u);
  EXPECT_EQ(kernel.function("outer"), 0u);
  EXPECT_EQ(kernel.member("outer", "plain"), 0);
  EXPECT_EQ(kernel.member("outer", "deep"), 12);            // in a structure in a union, both without a name
  EXPECT_EQ(kernel.member("outer", "flag"), std::nullopt);  // begins within a byte
  EXPECT_EQ(kernel.member("outer", "nothing"), std::nullopt);
  EXPECT_EQ(kernel.member("nothing", "plain"), std::nullopt);
}

TEST(Btf, WhatIsNoneOrCutHasNothingBeyond) {
  EXPECT_EQ(Btf("").function("call"), 0u);
  EXPECT_EQ(Btf(std::string(64, '\0')).function("call"), 0u);
  const std::string good = btf(types(), kStrings);
  for (size_t size = 0; size < good.size(); ++size) {
    const Btf cut(good.substr(0, size));
    EXPECT_EQ(cut.function("flag"), 0u);
    (void)cut.member("outer", "deep");
  }
}

TEST(Btf, StructuresInThemselvesEnd) {
  std::string loop;
  put(loop, {kOuter, info(kStructure, 1), 8, kNone, 1, 0});
  EXPECT_EQ(Btf(btf(loop, kStrings)).member("outer", "deep"), std::nullopt);
}

}  // namespace
}  // namespace firestop::guest
