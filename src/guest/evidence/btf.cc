#include "guest/evidence/btf.h"

#include <string.h>

#include <limits>
#include <utility>

namespace firestop::guest {
namespace {

constexpr uint32_t kStructure = 4, kUnion = 5, kFunction = 12;
constexpr size_t kHead = 12;  // of a type
constexpr int kDeepest = 8;   // members without a name in such members

template <typename T>
T value_at(std::string_view bytes, size_t at) {
  T value{};
  if (at <= bytes.size() && bytes.size() - at >= sizeof value)
    ::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// What follows a type's head, by its kind and its count of members.
size_t more_of_type(uint32_t kind, uint32_t members) {
  switch (kind) {
    case 1:   // INT
    case 14:  // VAR
    case 17:  // DECL_TAG
      return 4;
    case 3:  // ARRAY
      return 12;
    case kStructure:
    case kUnion:
    case 15:  // DATASEC
    case 19:  // ENUM64
      return size_t{12} * members;
    case 6:   // ENUM
    case 13:  // FUNC_PROTO
      return size_t{8} * members;
    default:
      return 0;
  }
}

}  // namespace

Btf::Btf(std::string bytes) : bytes_(std::move(bytes)) {
  const std::string_view all = bytes_;
  if (value_at<uint16_t>(all, 0) != 0xeb9f) return;
  const auto part = [&](size_t at) {
    const uint64_t begin = uint64_t{value_at<uint32_t>(all, 4)} + value_at<uint32_t>(all, at);
    return begin <= all.size() ? all.substr(begin, value_at<uint32_t>(all, at + 4)) : std::string_view();
  };
  types_ = part(8);
  strings_ = part(16);
  for (size_t at = 0; at + kHead <= types_.size();) {
    places_.push_back(static_cast<uint32_t>(at));
    const Type one = type(at);
    at = one.at + more_of_type(one.kind, one.members);
  }
}

Btf::Type Btf::type(size_t at) const {
  const auto info = value_at<uint32_t>(types_, at + 4);
  return {.name = value_at<uint32_t>(types_, at),
          .kind = info >> 24 & 31,
          .members = info & 0xffff,
          .bit_fields = (info >> 31) != 0,
          .at = at + kHead};
}

bool Btf::named(uint32_t text, std::string_view name) const {
  return text < strings_.size() && strings_.size() - text > name.size() &&
         strings_.substr(text, name.size()) == name && strings_[text + name.size()] == '\0';
}

uint32_t Btf::function(std::string_view name) const {
  for (size_t i = 0; i < places_.size(); ++i)
    if (const Type one = type(places_[i]); one.kind == kFunction && named(one.name, name))
      return static_cast<uint32_t>(i + 1);
  return 0;
}

std::optional<uint32_t> Btf::bits_to(uint32_t number, std::string_view name, int depth) const {
  if (number == 0 || number > places_.size() || depth > kDeepest) return std::nullopt;
  const Type whole = type(places_[number - 1]);
  if (whole.kind != kStructure && whole.kind != kUnion) return std::nullopt;
  for (uint32_t i = 0; i < whole.members; ++i) {
    const size_t at = whole.at + size_t{12} * i;
    const auto text = value_at<uint32_t>(types_, at), inner = value_at<uint32_t>(types_, at + 4);
    uint32_t bits = value_at<uint32_t>(types_, at + 8);
    if (whole.bit_fields) bits &= 0xffffff;  // above it: how many bits
    if (named(text, name)) return bits;
    if (!named(text, "")) continue;
    if (const auto more = bits_to(inner, name, depth + 1)) return bits + *more;
  }
  return std::nullopt;
}

std::optional<int16_t> Btf::member(std::string_view structure, std::string_view name) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const Type one = type(places_[i]);
    if (one.kind != kStructure || !named(one.name, structure)) continue;
    const auto bits = bits_to(static_cast<uint32_t>(i + 1), name, 0);
    if (bits && *bits % 8 == 0 && *bits / 8 <= std::numeric_limits<int16_t>::max())
      return static_cast<int16_t>(*bits / 8);
  }
  return std::nullopt;
}

}  // namespace firestop::guest
