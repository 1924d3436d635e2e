#include "channel/fields.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "channel/messages.h"
#include "codec/base64.h"
#include "codec/utf8.h"

namespace firestop::channel {
namespace {

using codec::Json;
using codec::JsonArray;

constexpr size_t kMaxShown = 64;  // of a member's name in an error

// Why not, or nullptr.
const char* token_fault(const std::string& value, size_t max) {
  if (value.size() > max) return "too long";
  return codec::printable(value, 3 * value.size()) == value &&
                 value.find_first_of("\n\t") == std::string::npos
             ? nullptr
             : "characters that do not belong there";
}

const char* bytes_fault(const std::string& value, size_t max) {
  return value.size() > max ? "too long" : nullptr;
}

const char* c_string_fault(const std::string& value, size_t max) {
  if (value.size() > max) return "too long";
  return value.find('\0') == std::string::npos ? nullptr : "a NUL byte";
}

bool in(int64_t value, Range range) {
  return value >= range.low && value <= range.high;
}

std::string join(std::string_view name, std::string_view what) {
  return std::string(name) + (what.empty() || what.front() == '.' ? "" : ": ") + std::string(what);
}

}  // namespace

void Writer::complain(std::string_view name, std::string_view what) {
  if (fault_.empty()) fault_ = join(name, what);
}

void Writer::put_integer(const char* name, int64_t value, Range range) {
  if (!in(value, range)) return complain(name, "out of range");
  put(name, value);
}

void Writer::real(const char* name, double value, double high) {
  if (!(value >= 0 && value <= high)) return complain(name, "out of range");
  put(name, value);
}

void Writer::boolean(const char* name, bool value) {
  put(name, value);
}

void Writer::token(const char* name, const std::string& value, size_t max) {
  if (const char* wrong = token_fault(value, max)) return complain(name, wrong);
  put(name, value);
}

void Writer::text(const char* name, const std::string& value) {
  put(name, codec::printable(value, kMaxText));
}

void Writer::bytes(const char* name, const std::string& value, size_t max) {
  if (const char* wrong = bytes_fault(value, max)) return complain(name, wrong);
  put(name, codec::encode_base64(value));
}

void Writer::c_string(const char* name, const std::string& value, size_t max) {
  if (const char* wrong = c_string_fault(value, max)) return complain(name, wrong);
  put(name, codec::encode_base64(value));
}

void Writer::tokens(const char* name, const std::vector<std::string>& list, size_t max_count, size_t max) {
  if (list.size() > max_count) return complain(name, "too many");
  for (const std::string& value : list)
    if (const char* wrong = token_fault(value, max)) return complain(name, wrong);
  put(name, JsonArray(list.begin(), list.end()));
}

void Writer::c_strings(const char* name, const std::vector<std::string>& list, size_t max_count, size_t max) {
  if (list.size() > max_count) return complain(name, "too many");
  JsonArray array;
  for (const std::string& value : list) {
    if (const char* wrong = c_string_fault(value, max)) return complain(name, wrong);
    array.emplace_back(codec::encode_base64(value));
  }
  put(name, std::move(array));
}

void Writer::integers(const char* name, const std::vector<uint32_t>& list, size_t max_count) {
  if (list.size() > max_count) return complain(name, "too many");
  put(name, JsonArray(list.begin(), list.end()));
}

Reader::Reader(const Json& object, Unknown unknown) : object_(object), unknown_(unknown) {
  if (!object.as_object()) fault_ = "not an object";
}

void Reader::complain(std::string_view name, std::string_view what) {
  if (fault_.empty()) fault_ = join(name, what);
}

const Json* Reader::get(const char* name) {
  if (!fault_.empty()) return nullptr;
  known_.push_back(name);
  const Json* member = object_.find(name);
  if (!member) complain(name, "missing");
  return member;
}

const std::string* Reader::get_string(const char* name) {
  const Json* member = get(name);
  if (!member) return nullptr;
  const std::string* value = member->as_string();
  if (!value) complain(name, "not a string");
  return value;
}

const JsonArray* Reader::get_array(const char* name, size_t max_count) {
  const Json* member = get(name);
  if (!member) return nullptr;
  const JsonArray* array = member->as_array();
  if (!array) {
    complain(name, "not a list");
  } else if (array->size() > max_count) {
    complain(name, "too many");
    array = nullptr;
  }
  return array;
}

bool Reader::get_integer(const char* name, int64_t& value, Range range) {
  const Json* member = get(name);
  if (!member) return false;
  const int64_t* number = member->as_int();
  if (!number || !in(*number, range)) {
    complain(name, number ? "out of range" : "not an integer");
    return false;
  }
  value = *number;
  return true;
}

void Reader::real(const char* name, double& value, double high) {
  const Json* member = get(name);
  if (!member) return;
  const double* fraction = member->as_double();
  const int64_t* whole = member->as_int();
  if (!fraction && !whole) return complain(name, "not a number");
  double number = fraction ? *fraction : static_cast<double>(*whole);
  if (!(number >= 0 && number <= high)) return complain(name, "out of range");
  value = number;
}

void Reader::boolean(const char* name, bool& value) {
  const Json* member = get(name);
  if (!member) return;
  if (!member->as_bool()) return complain(name, "not a boolean");
  value = *member->as_bool();
}

void Reader::token(const char* name, std::string& value, size_t max) {
  const std::string* s = get_string(name);
  if (!s) return;
  if (const char* wrong = token_fault(*s, max)) return complain(name, wrong);
  value = *s;
}

void Reader::text(const char* name, std::string& value) {
  const std::string* s = get_string(name);
  if (!s) return;
  if (s->size() > kMaxText) return complain(name, "too long");
  value = codec::printable(*s, kMaxText);
}

void Reader::bytes(const char* name, std::string& value, size_t max) {
  const std::string* s = get_string(name);
  if (!s) return;
  std::optional<std::string> decoded = codec::decode_base64(*s);
  if (!decoded) return complain(name, "not base64");
  if (const char* wrong = bytes_fault(*decoded, max)) return complain(name, wrong);
  value = std::move(*decoded);
}

void Reader::c_string(const char* name, std::string& value, size_t max) {
  bytes(name, value, max);
  if (!fault_.empty()) return;
  if (const char* wrong = c_string_fault(value, max)) complain(name, wrong);
}

void Reader::tokens(const char* name, std::vector<std::string>& list, size_t max_count, size_t max) {
  const JsonArray* array = get_array(name, max_count);
  if (!array) return;
  for (const Json& element : *array) {
    const std::string* s = element.as_string();
    if (!s) return complain(name, "not a list of strings");
    if (const char* wrong = token_fault(*s, max)) return complain(name, wrong);
    list.push_back(*s);
  }
}

void Reader::c_strings(const char* name, std::vector<std::string>& list, size_t max_count, size_t max) {
  const JsonArray* array = get_array(name, max_count);
  if (!array) return;
  for (const Json& element : *array) {
    const std::string* s = element.as_string();
    std::optional<std::string> decoded = s ? codec::decode_base64(*s) : std::nullopt;
    if (!decoded) return complain(name, "not a list of base64");
    if (const char* wrong = c_string_fault(*decoded, max)) return complain(name, wrong);
    list.push_back(std::move(*decoded));
  }
}

void Reader::integers(const char* name, std::vector<uint32_t>& list, size_t max_count) {
  const JsonArray* array = get_array(name, max_count);
  if (!array) return;
  for (const Json& element : *array) {
    const int64_t* number = element.as_int();
    if (!number || !std::in_range<uint32_t>(*number)) return complain(name, "out of range");
    list.push_back(static_cast<uint32_t>(*number));
  }
}

void Reader::finish() {
  if (unknown_ == Unknown::kIgnore || !fault_.empty()) return;
  for (const auto& [name, value] : *object_.as_object()) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end())
      return complain("unknown member", codec::printable(name, kMaxShown));
  }
}

}  // namespace firestop::channel
