#include <charconv>
#include <cmath>

#include "codec/json.h"
#include "codec/utf8.h"

namespace firestop::codec {
namespace {

enum class Layout { kOneLine, kPretty };

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::string text = write_ecmascript_number(value);
  out += text;
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

void append_line(std::string& out, size_t depth, Layout layout) {
  if (layout == Layout::kOneLine) return;
  out.push_back('\n');
  out.append(2 * depth, ' ');
}

void append_value(std::string& out, const Json& value, size_t depth, Layout layout);

void append_array(std::string& out, const JsonArray& array, size_t depth, Layout layout) {
  out.push_back('[');
  for (size_t i = 0; i < array.size(); ++i) {
    if (i > 0) out.push_back(',');
    append_line(out, depth + 1, layout);
    append_value(out, array[i], depth + 1, layout);
  }
  if (!array.empty()) append_line(out, depth, layout);
  out.push_back(']');
}

void append_object(std::string& out, const JsonObject& object, size_t depth, Layout layout) {
  out.push_back('{');
  bool first = true;
  for (const auto& [key, member] : object) {
    if (!first) out.push_back(',');
    first = false;
    append_line(out, depth + 1, layout);
    append_json_string(out, key);
    out += layout == Layout::kPretty ? ": " : ":";
    append_value(out, member, depth + 1, layout);
  }
  if (!object.empty()) append_line(out, depth, layout);
  out.push_back('}');
}

void append_value(std::string& out, const Json& value, size_t depth, Layout layout) {
  if (const bool* b = value.as_bool()) {
    out += *b ? "true" : "false";
  } else if (const int64_t* i = value.as_int()) {
    out += std::to_string(*i);
  } else if (const double* d = value.as_double()) {
    append_double(out, *d);
  } else if (const std::string* s = value.as_string()) {
    append_json_string(out, *s);
  } else if (const JsonArray* a = value.as_array()) {
    append_array(out, *a, depth, layout);
  } else if (const JsonObject* o = value.as_object()) {
    append_object(out, *o, depth, layout);
  } else {
    out += "null";
  }
}

bool needs_nothing(char c) {
  return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

// The escape of a control character, a quote or a backslash.
void append_escape(std::string& out, char c) {
  constexpr std::string_view kNamed = "\b\t\n\f\r\"\\", kNames = "btnfr\"\\", kHex = "0123456789abcdef";
  out.push_back('\\');
  if (size_t at = kNamed.find(c); at != std::string_view::npos) {
    out.push_back(kNames[at]);
  } else {
    out += "u00";
    out.push_back(kHex[static_cast<unsigned char>(c) >> 4]);
    out.push_back(kHex[static_cast<unsigned char>(c) & 15]);
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    size_t as_it_is = 0;
    while (as_it_is < text.size() && needs_nothing(text[as_it_is])) ++as_it_is;
    out.append(text.substr(0, as_it_is));
    text.remove_prefix(as_it_is);
    if (text.empty()) break;
    char32_t c = 0;
    size_t length = decode_utf8(text, c);
    if (length == 0) {
      append_utf8(out, 0xfffd);
      length = 1;
    } else if (c < 0x20 || c == '"' || c == '\\') {
      append_escape(out, text[0]);
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  out.push_back('"');
}

// ECMA-262, Number::toString: digits d1 d2 .. dk and n, so that the value is 0.d1d2..dk * 10^n.
std::string write_ecmascript_number(double value) {
  if (value == 0) return "0";
  char buffer[32];
  auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::scientific).ptr;
  std::string_view text(buffer,
                        static_cast<size_t>(end - buffer));  // "d.ddde+XX", the shortest that is exact
  size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 1) digits += text.substr(2, e - 2);
  int exponent = 0;
  size_t sign = text[e + 1] == '+' ? e + 2 : e + 1;  // from_chars takes '-' but no '+'
  std::from_chars(text.data() + sign, end, exponent);
  const int n = exponent + 1, k = static_cast<int>(digits.size());

  std::string out = value < 0 ? "-" : "";
  auto zeros = [](int count) { return std::string(static_cast<size_t>(count), '0'); };
  if (k <= n && n <= 21) return out + digits + zeros(n - k);
  if (0 < n && n <= 21) return out + digits.insert(static_cast<size_t>(n), ".");
  if (-6 < n && n <= 0) return out + "0." + zeros(-n) + digits;
  if (k > 1) digits.insert(1, ".");
  return out + digits + (n > 0 ? "e+" : "e-") + std::to_string(std::abs(n - 1));
}

std::string write_json(const Json& value) {
  std::string out;
  append_value(out, value, 0, Layout::kOneLine);
  return out;
}

std::string write_json_pretty(const Json& value) {
  std::string out;
  append_value(out, value, 0, Layout::kPretty);
  out.push_back('\n');
  return out;
}

}  // namespace firestop::codec
