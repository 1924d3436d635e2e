#include "base/diagnostic.h"

#include <algorithm>
#include <optional>

namespace firestop {
namespace {

constexpr size_t kMaxShown = 120;  // characters of a source line

std::string_view line_at(std::string_view text, size_t line) {
  for (size_t n = 1; n < line; ++n) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Of a UTF-8 character's bytes; nothing for what is none. Overlong forms are the reader's to refuse.
std::optional<char32_t> code_of(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes.front());
  const size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length != bytes.size() || lead > 0xF4) return std::nullopt;
  char32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code;
}

// What would change the terminal or the order in which the rest is shown.
bool acts(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string hexadecimal(char32_t value, int digits) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out.push_back(kDigits[value >> shift & 15]);
  return out;
}

std::string shown(std::string_view bytes) {
  const auto code = code_of(bytes);
  if (code == U'\t') return " ";
  if (code && !acts(*code)) return std::string(bytes);
  if (code) return *code < 0x100 ? "\\x" + hexadecimal(*code, 2) : "\\u" + hexadecimal(*code, 4);
  std::string out;
  for (const char c : bytes) out += "\\x" + hexadecimal(static_cast<unsigned char>(c), 2);
  return out;
}

// How wide it is on a terminal: the characters of an escape, else one.
size_t width_of(const std::string& character) {
  return character.size() > 1 && character.front() == '\\' ? character.size() : 1;
}

// The line as separate characters, safe to print; a tab becomes one space so that the caret fits.
std::vector<std::string> printable_characters(std::string_view line) {
  std::vector<std::string> out;
  for (size_t at = 0; at < line.size();) {
    size_t end = at + 1;
    while (end < line.size() && is_continuation(line[end])) ++end;
    out.push_back(shown(line.substr(at, end - at)));
    at = end;
  }
  return out;
}

}  // namespace

std::string Diagnostic::headline() const {
  std::string out = file;
  if (where.line > 0) out += ":" + std::to_string(where.line) + ":" + std::to_string(where.column);
  out += ": ";
  if (!field.empty()) out += field + ": ";
  out += wrong;
  if (!expected.empty()) out += "; " + expected;
  return out;
}

std::string render(const Diagnostic& diagnostic, std::string_view text) {
  std::string out = diagnostic.headline() + "\n";
  if (diagnostic.where.line == 0) return out;
  const auto characters = printable_characters(line_at(text, diagnostic.where.line));
  const size_t column = diagnostic.where.column == 0 ? 1 : diagnostic.where.column;
  if (characters.empty() || column > characters.size() + 1) return out;
  const size_t from = column > kMaxShown / 2 ? column - kMaxShown / 2 : 0;
  const size_t to = std::min(characters.size(), from + kMaxShown);
  const std::string number = std::to_string(diagnostic.where.line);
  out += "  " + number + " | ";
  size_t before = 0;
  for (size_t i = from; i < to; ++i) {
    out += characters[i];
    if (i + 1 < column) before += width_of(characters[i]);
  }
  out += "\n  " + std::string(number.size(), ' ') + " | " + std::string(before, ' ') + "^\n";
  return out;
}

std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view text) {
  std::string out;
  for (const auto& diagnostic : diagnostics) out += render(diagnostic, text);
  return out;
}

}  // namespace firestop
