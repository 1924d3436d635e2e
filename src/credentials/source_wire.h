// The answers of the source process: a byte, 'v' or 'n'; how long the value is valid, 8 bytes, milliseconds,
// least first; the value, or why there is none.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "credentials/secret.h"

namespace firestop::credentials {

inline constexpr size_t kAnswerHead = 9;
inline constexpr size_t kMostSourceAnswer = kAnswerHead + kMostSecret;
inline constexpr size_t kMostName = 128;

// Into `packet`, of kMostSourceAnswer bytes. How many it is.
size_t write_answer(Secret& packet, std::string_view value, std::chrono::milliseconds valid);
size_t write_refusal(Secret& packet, std::string_view why);

struct SourceAnswer {
  bool has_value = false;
  std::chrono::milliseconds valid{};
  std::string_view bytes;  // the value, or why not; into the packet
};
std::optional<SourceAnswer> read_answer(std::string_view packet);

}  // namespace firestop::credentials
