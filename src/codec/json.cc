#include "codec/json.h"

#include <limits>

namespace firestop::codec {

Json::Json() = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;
bool Json::operator==(const Json& other) const {
  return value_ == other.value_;
}

Json::Json(uint64_t v) {
  if (v <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    value_ = static_cast<int64_t>(v);
  } else {
    value_ = static_cast<double>(v);
  }
}

const Json* Json::find(std::string_view key) const {
  const JsonObject* object = as_object();
  if (!object) return nullptr;
  auto it = object->find(key);
  return it == object->end() ? nullptr : &it->second;
}

std::string Json::string_or(std::string_view key, std::string_view fallback) const {
  const Json* member = find(key);
  const std::string* value = member ? member->as_string() : nullptr;
  return value ? *value : std::string(fallback);
}

int64_t Json::int_or(std::string_view key, int64_t fallback) const {
  const Json* member = find(key);
  const int64_t* value = member ? member->as_int() : nullptr;
  return value ? *value : fallback;
}

bool Json::bool_or(std::string_view key, bool fallback) const {
  const Json* member = find(key);
  const bool* value = member ? member->as_bool() : nullptr;
  return value ? *value : fallback;
}

}  // namespace firestop::codec
