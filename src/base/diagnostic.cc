#include "base/diagnostic.h"

#include <algorithm>

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

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// The line as separate characters, safe to print; a tab becomes one space so that the caret fits.
std::vector<std::string> printable_characters(std::string_view line) {
  std::vector<std::string> out;
  for (const char c : line) {
    if (starts_character(c) || out.empty()) out.emplace_back();
    const auto byte = static_cast<unsigned char>(c);
    out.back() += c == '\t' ? ' ' : (byte < 0x20 || byte == 0x7F) ? '?' : c;
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
  for (size_t i = from; i < to; ++i) out += characters[i];
  out += "\n  " + std::string(number.size(), ' ') + " | " + std::string(column - 1 - from, ' ') + "^\n";
  return out;
}

std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view text) {
  std::string out;
  for (const auto& diagnostic : diagnostics) out += render(diagnostic, text);
  return out;
}

}  // namespace firestop
