// Quantities as people write them, and back. Parsers take the whole text or refuse it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firestop {

// "512MiB", "2GiB", "10kB", "4096B": digits, an optional fraction, a unit of B, kB, MB, GB, TB, KiB, MiB,
// GiB, TiB. Nothing without a unit except "0"; nothing at or above 2^63.
std::optional<uint64_t> parse_bytes(std::string_view text);
// "45m", "1h30m", "90s", "250ms", "2d": units of d, h, m, s, ms in falling order, each once.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
// "20Mbit/s", "50MiB/s": bytes a second.
std::optional<uint64_t> parse_rate(std::string_view text);

std::string format_bytes(uint64_t bytes);                      // "1.5GiB", exact where a unit divides it
std::string format_duration(std::chrono::milliseconds value);  // "1h30m", "2.9s" below a minute

}  // namespace firestop
