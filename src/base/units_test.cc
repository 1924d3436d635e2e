#include "base/units.h"

#include <gtest/gtest.h>

namespace firestop {
namespace {

using std::chrono::milliseconds;

TEST(Units, Bytes) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("512MiB"), 512ull << 20);
  EXPECT_EQ(parse_bytes("1.5GiB"), 3ull << 29);
  EXPECT_EQ(parse_bytes("10kB"), 10000u);
  for (const char* bad : {"", "1", "MiB", "1 MiB", "1mib", "-1MiB", "01MiB", "1.MiB", "1.2345MiB", "0x1MiB",
                          "9999999999999TiB", "1MiBx", "1.0005B", "+1B", "1e3B", "inf"})
    EXPECT_EQ(parse_bytes(bad), std::nullopt) << bad;
}

TEST(Units, Durations) {
  EXPECT_EQ(parse_duration("45m"), milliseconds(45 * 60000));
  EXPECT_EQ(parse_duration("1h30m"), milliseconds(5400000));
  EXPECT_EQ(parse_duration("1.5s"), milliseconds(1500));
  EXPECT_EQ(parse_duration("250ms"), milliseconds(250));
  for (const char* bad : {"", "45", "m", "30m1h", "1m1m", "-1s", "1 h", "1H", "99999999999999d", "1h "})
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
}

TEST(Units, Rates) {
  EXPECT_EQ(parse_rate("20Mbit/s"), 2500000u);
  EXPECT_EQ(parse_rate("50MiB/s"), 50ull << 20);
  for (const char* bad : {"", "20", "20Mbit", "20MiB", "Mbit/s", "/s"})
    EXPECT_EQ(parse_rate(bad), std::nullopt) << bad;
}

TEST(Units, AreWrittenForPeople) {
  EXPECT_EQ(format_bytes(0), "0B");
  EXPECT_EQ(format_bytes(2ull << 30), "2GiB");
  EXPECT_EQ(format_bytes(3ull << 29), "1.5GiB");
  EXPECT_EQ(format_duration(milliseconds(2900)), "2.9s");
  EXPECT_EQ(format_duration(milliseconds(5400000)), "1h30m");
  EXPECT_EQ(format_duration(milliseconds(90000)), "1m30s");
}

}  // namespace
}  // namespace firestop
