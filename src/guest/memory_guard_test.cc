#include "guest/memory_guard.h"

#include <gtest/gtest.h>

#include <string>

namespace firestop::guest {
namespace {

constexpr uint64_t kMax = 300u << 20;

std::string stat(uint64_t anon, uint64_t file, uint64_t shmem, uint64_t refaults) {
  return "anon " + std::to_string(anon) + "\nfile " + std::to_string(file) + "\nshmem " +
         std::to_string(shmem) + "\nfile_mapped 1\nworkingset_refault_anon 77777\nworkingset_refault_file " +
         std::to_string(refaults) + "\n";
}

TEST(MemoryGuard, TellsThrashingFromWork) {
  const struct {
    std::string stat;
    uint64_t before;
    bool expected;
    const char* why;
  } kRows[] = {
      {stat(290u << 20, 2u << 20, 0, 9000), 1000, true, "a full cap whose cache goes round"},
      {stat(100u << 20, 192u << 20, 190u << 20, 9000), 1000, true, "shared memory cannot be dropped either"},
      {stat(290u << 20, 2u << 20, 0, 1100), 1000, false, "streaming through files: no refaults"},
      {stat(200u << 20, 90u << 20, 0, 90000), 1000, false, "much can be dropped: the kernel will manage"},
      {stat(270u << 20, 24u << 20, 0, 9000), 1000, false, "a cache that turns over slowly"},
      {stat(290u << 20, 0, 0, 1000), 1000, false, "nothing happened"},
      {"", 0, false, "no such file"},
      {"anon", 0, false, "cut short"},
  };
  for (const auto& row : kRows)
    EXPECT_EQ(thrashes(row.stat.c_str(), kMax, row.before), row.expected) << row.why;
}

}  // namespace
}  // namespace firestop::guest
