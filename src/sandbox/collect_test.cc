#include "sandbox/collect.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"

namespace firestop::sandbox {
namespace {

TEST(Collector, KeepsStreamsApartUnderOneBound) {
  char name[] = "/tmp/firestop-collect-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string dir = name;
  Collector collector(10);
  ASSERT_TRUE(collector.expect(8, dir + "/a"));
  ASSERT_TRUE(collector.expect(16, dir + "/b"));
  EXPECT_TRUE(*collector.data(8, "12345"));
  EXPECT_TRUE(*collector.data(16, "67890"));
  EXPECT_FALSE(*collector.data(8, "x"));  // one byte beyond the bound
  EXPECT_EQ(collector.data(9, "x").error().code, "channel.bad_stream");
  EXPECT_FALSE(collector.complete());
  collector.end(8);
  collector.end(16);
  EXPECT_TRUE(collector.complete());
  EXPECT_EQ(*read_file(dir + "/a"), "12345");
  EXPECT_EQ(*read_file(dir + "/b"), "67890");
  // A file that is already there is somebody's: never overwritten.
  EXPECT_FALSE(collector.expect(17, dir + "/a"));
  ASSERT_TRUE(remove_tree(dir));
}

}  // namespace
}  // namespace firestop::sandbox
