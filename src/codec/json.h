// JSON (RFC 8259), strict: UTF-8 only and no byte order mark, no duplicate keys, depth at most 32, one
// document, nothing but white space after it. Numbers without fraction and exponent are integers if they fit
// int64_t; all others are the nearest double, and refused beyond a double's range. Behind it stands
// Boost.JSON's parser with our handler. Works without exceptions, so the guest uses it too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace firestop::codec {

class Json;
using JsonArray = std::vector<Json>;
using JsonObject = std::map<std::string, Json, std::less<>>;  // sorted by bytes

class Json {
 public:
  Json();  // null
  // Not inline: g++ 12 raises false alarms (-Wmaybe-uninitialized) when it inlines a variant's moves.
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();
  Json(bool v) : value_(v) {}
  Json(int v) : value_(static_cast<int64_t>(v)) {}
  Json(unsigned v) : value_(static_cast<int64_t>(v)) {}
  Json(int64_t v) : value_(v) {}
  Json(uint64_t v);  // above 2^63-1 becomes a double
  Json(double v) : value_(v) {}
  Json(const char* v) : value_(std::string(v)) {}
  Json(std::string_view v) : value_(std::string(v)) {}
  Json(std::string v) : value_(std::move(v)) {}
  Json(JsonArray v) : value_(std::move(v)) {}
  Json(JsonObject v) : value_(std::move(v)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // nullptr if it is something else
  const bool* as_bool() const { return std::get_if<bool>(&value_); }
  const int64_t* as_int() const { return std::get_if<int64_t>(&value_); }
  const double* as_double() const { return std::get_if<double>(&value_); }
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  const JsonArray* as_array() const { return std::get_if<JsonArray>(&value_); }
  const JsonObject* as_object() const { return std::get_if<JsonObject>(&value_); }
  JsonArray* as_array() { return std::get_if<JsonArray>(&value_); }
  JsonObject* as_object() { return std::get_if<JsonObject>(&value_); }

  // Of an object: the member, or nullptr (also if this is no object).
  const Json* find(std::string_view key) const;
  // Of an object, with a fallback for a missing member or another type.
  std::string string_or(std::string_view key, std::string_view fallback) const;
  int64_t int_or(std::string_view key, int64_t fallback) const;
  bool bool_or(std::string_view key, bool fallback) const;

  bool operator==(const Json& other) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, JsonArray, JsonObject> value_;
};

inline constexpr int kMaxJsonDepth = 32;

// Errors: "json.bad" with "line:column: what"; columns count characters.
Result<Json> parse_json(std::string_view text);

// One line, members sorted by bytes. A double keeps a fraction or exponent, so that parsing gives the same
// value back; NaN and infinities become null, malformed UTF-8 becomes U+FFFD: what is written always parses.
std::string write_json(const Json& value);
std::string write_json_pretty(const Json& value);  // two spaces, newline at the end

// RFC 8785 (JSON Canonicalization Scheme): members sorted by UTF-16 code units, numbers as ECMAScript writes
// them. Integers beyond 2^53, NaN, infinities and malformed UTF-8 are errors ("json.not_canonical").
Result<std::string> write_canonical_json(const Json& value);

// As ECMAScript's Number::toString does; `value` must be finite.
std::string write_ecmascript_number(double value);
// Appends the string literal of RFC 8785, section 3.2.2.2: the shortest escapes, and only where needed.
void append_json_string(std::string& out, std::string_view text);

}  // namespace firestop::codec
