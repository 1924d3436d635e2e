#include "egress/request_path.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace firestop::egress {
namespace {

constexpr size_t kMostPath = 8192;  // bytes; servers refuse longer ones

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

// The byte that an escape at `at` stands for, or -1.
int escaped(std::string_view text, size_t at) {
  if (at + 2 >= text.size() || text[at] != '%') return -1;
  const int high = hex_value(text[at + 1]), low = hex_value(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool unreserved(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::string decode_once(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const int byte = escaped(text, at);
    out += byte < 0 ? text[at] : static_cast<char>(byte);
    if (byte >= 0) at += 2;
  }
  return out;
}

// As RFC 3986 normalises it: an escape only where one is needed, in upper case.
void append_normal(std::string& out, int byte) {
  if (unreserved(byte)) {
    out += static_cast<char>(byte);
    return;
  }
  out += '%';
  out += kHexDigits[static_cast<size_t>(byte >> 4)];
  out += kHexDigits[static_cast<size_t>(byte & 15)];
}

// What some server takes for "." or "..": parameters after ';' and trailing blanks are passed over (Tomcat,
// Windows).
bool is_dots(std::string_view part) {
  part = part.substr(0, part.find(';'));
  while (!part.empty() && (part.back() == ' ' || part.back() == '\t')) part.remove_suffix(1);
  return part == "." || part == "..";
}

// UTF-8 in more bytes than needed (RFC 3629 forbids it): old decoders read %C0%AE as ".".
bool has_overlong(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size(); ++at) {
    const auto c = static_cast<uint8_t>(bytes[at]);
    const auto next = at + 1 < bytes.size() ? static_cast<uint8_t>(bytes[at + 1]) : 0;
    if (c == 0xC0 || c == 0xC1 || (c == 0xE0 && next < 0xA0) || (c == 0xF0 && next < 0x90)) return true;
  }
  return false;
}

std::string why_not_decoded(std::string_view component) {
  for (size_t at = 0; at <= component.size();) {
    const size_t end = std::min(component.find_first_of("/\\", at), component.size());
    if (is_dots(component.substr(at, end - at))) return "has '.' or '..' in it";
    at = end + 1;
  }
  if (component.find('\\') != std::string::npos) return "has a backslash in it";
  if (component.find('\0') != std::string::npos) return "has NUL in it";
  if (has_overlong(component)) return "has malformed UTF-8 in it";
  return {};
}

// As it is and with its escapes undone: no server may see a way up, or another separator, in it. Whoever
// undoes them twice would see what no pattern was compared with.
std::string why_not_component(std::string_view component) {
  if (auto why = why_not_decoded(component); !why.empty()) return why;
  const std::string decoded = decode_once(component);
  if (auto why = why_not_decoded(decoded); !why.empty()) return why;
  return decode_once(decoded) == decoded ? std::string() : "has escapes within escapes in it";
}

// Characters of a component against a pattern's; '*' stands for any but an escaped slash.
bool component_matches(std::string_view pattern, std::string_view text) {
  size_t star = std::string_view::npos, retry = 0, p = 0, t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else {
      if (star == std::string_view::npos || text.substr(retry, 3) == "%2F") return false;
      p = star + 1;
      t = ++retry;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> out;
  for (size_t at = path.starts_with('/') ? 1 : 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string unescaped(std::string_view path) {
  return decode_once(path);
}

RequestPath read_request_path(std::string_view target) {
  const auto refuse = [](std::string why) { return RequestPath{{}, std::move(why)}; };
  if (target == "*") return {"*", {}};
  const std::string_view raw = target.substr(0, target.find('?'));
  if (!raw.starts_with('/')) return refuse("does not begin with '/'");
  if (raw.size() > kMostPath) return refuse("is longer than " + std::to_string(kMostPath) + " bytes");
  std::string out;
  for (size_t at = 0; at < raw.size(); ++at) {
    const char c = raw[at];
    if (c <= ' ' || c >= 0x7F || c == '#') return refuse("has a character that requests write as %HH");
    if (c != '%') {
      out += c;
      continue;
    }
    const int byte = escaped(raw, at);
    if (byte < 0) return refuse("has '%' without two hexadecimal digits");
    append_normal(out, byte);
    at += 2;
  }
  const auto components = split(out);
  for (size_t at = 0; at < components.size(); ++at) {
    if (components[at].empty() && at + 1 < components.size()) return refuse("has '//' in it");
    if (auto why = why_not_component(components[at]); !why.empty()) return refuse(std::move(why));
  }
  return {std::move(out), {}};
}

std::string normal_pattern(std::string_view pattern) {
  std::string out;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const int byte = escaped(pattern, at);
    if (byte < 0) {
      out += pattern[at];
    } else {
      append_normal(out, byte);
      at += 2;
    }
  }
  return out;
}

bool path_matches(std::string_view pattern, std::string_view path) {
  if (path == "*") return pattern == "*";
  const auto patterns = split(pattern), parts = split(path);
  // As in component_matches, a level higher: "**" remembers where to go on. At the end it needs a component,
  // which may be empty: /v1/** is /v1/, and not /v1.
  constexpr size_t kNone = std::string_view::npos;
  size_t deep = kNone, retry = 0, p = 0, t = 0;
  while (t < parts.size()) {
    if (p < patterns.size() && patterns[p] == "**") {
      deep = p++;
      retry = t;
    } else if (p < patterns.size() && component_matches(patterns[p], parts[t])) {
      ++p;
      ++t;
    } else {
      if (deep == kNone) return false;
      p = deep + 1;
      t = ++retry;
    }
  }
  return p == patterns.size();
}

}  // namespace firestop::egress
