#include "base/units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace firestop {
namespace {

struct Unit {
  std::string_view name;
  uint64_t size;
};

constexpr std::array<Unit, 9> kByteUnits{{{"TiB", 1ull << 40},
                                          {"GiB", 1ull << 30},
                                          {"MiB", 1ull << 20},
                                          {"KiB", 1ull << 10},
                                          {"TB", 1000000000000ull},
                                          {"GB", 1000000000ull},
                                          {"MB", 1000000ull},
                                          {"kB", 1000ull},
                                          {"B", 1}}};
constexpr std::array<Unit, 5> kTimeUnits{
    {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}}};
constexpr std::array<Unit, 4> kBitUnits{
    {{"Gbit/s", 1000000000}, {"Mbit/s", 1000000}, {"kbit/s", 1000}, {"bit/s", 1}}};

// A number with at most three fraction digits, in thousandths; removes it from `text`.
std::optional<uint64_t> take_thousandths(std::string_view& text) {
  uint64_t value = 0;
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    if (digits == 15) return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(text[digits++] - '0');
  }
  if (digits == 0 || (digits > 1 && text[0] == '0')) return std::nullopt;
  text.remove_prefix(digits);
  value *= 1000;
  if (text.size() >= 2 && text[0] == '.') {
    uint64_t weight = 100;
    size_t n = 1;
    for (; n < text.size() && text[n] >= '0' && text[n] <= '9'; ++n) {
      if (weight == 0) return std::nullopt;
      value += weight * static_cast<uint64_t>(text[n] - '0');
      weight /= 10;
    }
    if (n == 1) return std::nullopt;
    text.remove_prefix(n);
  }
  return value;
}

std::optional<uint64_t> scaled(uint64_t thousandths, uint64_t unit) {
  const unsigned __int128 product = static_cast<unsigned __int128>(thousandths) * unit;
  if (product % 1000 != 0 || product / 1000 >= (1ull << 63)) return std::nullopt;
  return static_cast<uint64_t>(product / 1000);
}

template <size_t N>
std::optional<uint64_t> parse_one(std::string_view text, const std::array<Unit, N>& units) {
  const auto number = take_thousandths(text);
  if (!number) return std::nullopt;
  for (const auto& unit : units)
    if (text == unit.name) return scaled(*number, unit.size);
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  if (text == "0") return 0;
  return parse_one(text, kByteUnits);
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::milliseconds(0);
  uint64_t total = 0;
  size_t next_unit = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto number = take_thousandths(text);
    if (!number) return std::nullopt;
    size_t letters = 0;
    while (letters < text.size() && text[letters] >= 'a' && text[letters] <= 'z') ++letters;
    size_t unit = next_unit;
    while (unit < kTimeUnits.size() && kTimeUnits[unit].name != text.substr(0, letters)) ++unit;
    if (unit == kTimeUnits.size()) return std::nullopt;
    const auto part = scaled(*number, kTimeUnits[unit].size);
    if (!part || total + *part > (1ull << 53)) return std::nullopt;
    total += *part;
    text.remove_prefix(letters);
    next_unit = unit + 1;
  }
  return std::chrono::milliseconds(total);
}

std::optional<uint64_t> parse_rate(std::string_view text) {
  if (const auto bits = parse_one(text, kBitUnits)) return *bits / 8;
  if (text.size() < 3 || text.substr(text.size() - 2) != "/s") return std::nullopt;
  text.remove_suffix(2);
  return parse_one(text, kByteUnits);
}

std::string format_bytes(uint64_t bytes) {
  char out[40];
  for (const auto& unit : {kByteUnits[0], kByteUnits[1], kByteUnits[2], kByteUnits[3]}) {
    if (bytes < unit.size) continue;
    if (bytes % unit.size == 0)
      std::snprintf(out, sizeof out, "%llu%.*s", static_cast<unsigned long long>(bytes / unit.size),
                    static_cast<int>(unit.name.size()), unit.name.data());
    else
      std::snprintf(out, sizeof out, "%.1f%.*s", static_cast<double>(bytes) / static_cast<double>(unit.size),
                    static_cast<int>(unit.name.size()), unit.name.data());
    return out;
  }
  return std::to_string(bytes) + "B";
}

std::string format_duration(std::chrono::milliseconds value) {
  auto rest = static_cast<uint64_t>(value.count());
  if (rest < 1000) return std::to_string(rest) + "ms";
  if (rest < 60000 && rest % 1000 != 0) {
    char out[24];
    std::snprintf(out, sizeof out, "%.1fs", static_cast<double>(rest) / 1000.0);
    return out;
  }
  rest = rest / 1000 * 1000;
  std::string out;
  for (const auto& unit : {kTimeUnits[0], kTimeUnits[1], kTimeUnits[2], kTimeUnits[3]}) {
    if (rest < unit.size) continue;
    out += std::to_string(rest / unit.size) + std::string(unit.name);
    rest %= unit.size;
  }
  return out;
}

}  // namespace firestop
