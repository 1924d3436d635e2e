#include <algorithm>
#include <cmath>

#include "codec/json.h"
#include "codec/utf8.h"

namespace firestop::codec {
namespace {

constexpr int64_t kMaxExact = int64_t{1} << 53;

Unexpected refuse(const std::string& what) {
  return fail("json.not_canonical", "no canonical JSON: " + what);
}

// RFC 8785, section 3.2.3, without making UTF-16: its order is that of code points but for those beyond
// U+FFFF, whose surrogates (D800 to DFFF) come before U+E000 to U+FFFF.
bool less_utf16(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    char32_t x = 0, y = 0;
    size_t m = decode_utf8(a, x), n = decode_utf8(b, y);
    if (m == 0 || n == 0) return a < b;  // malformed: refused when it is written
    if (x != y) {
      auto rank = [](char32_t c) { return c > 0xffff ? 1 : c >= 0xe000 ? 2 : 0; };
      return rank(x) != rank(y) ? rank(x) < rank(y) : x < y;
    }
    a.remove_prefix(m);
    b.remove_prefix(n);
  }
  return a.size() < b.size();
}

Result<void> append_string(std::string& out, const std::string& text) {
  if (!is_utf8(text)) return refuse("a string that is not UTF-8");
  append_json_string(out, text);
  return {};
}

Result<void> append(std::string& out, const Json& value);

Result<void> append_object(std::string& out, const JsonObject& object) {
  std::vector<const JsonObject::value_type*> members;
  for (const auto& member : object) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const auto* a, const auto* b) { return less_utf16(a->first, b->first); });
  char separator = '{';
  for (const auto* member : members) {
    out.push_back(separator);
    separator = ',';
    TRY(append_string(out, member->first));
    out.push_back(':');
    TRY(append(out, member->second));
  }
  out += object.empty() ? "{}" : "}";
  return {};
}

Result<void> append_array(std::string& out, const JsonArray& array) {
  char separator = '[';
  for (const Json& element : array) {
    out.push_back(separator);
    separator = ',';
    TRY(append(out, element));
  }
  out += array.empty() ? "[]" : "]";
  return {};
}

Result<void> append(std::string& out, const Json& value) {
  if (const std::string* s = value.as_string()) return append_string(out, *s);
  if (const JsonArray* a = value.as_array()) return append_array(out, *a);
  if (const JsonObject* o = value.as_object()) return append_object(out, *o);
  if (const int64_t* i = value.as_int()) {
    if (*i > kMaxExact || *i < -kMaxExact) return refuse(std::to_string(*i) + " is beyond 2^53");
    out += std::to_string(*i);
  } else if (const double* d = value.as_double()) {
    if (!std::isfinite(*d)) return refuse("a number that is not finite");
    out += write_ecmascript_number(*d);
  } else if (const bool* b = value.as_bool()) {
    out += *b ? "true" : "false";
  } else {
    out += "null";
  }
  return {};
}

}  // namespace

Result<std::string> write_canonical_json(const Json& value) {
  std::string out;
  TRY(append(out, value));
  return out;
}

}  // namespace firestop::codec
