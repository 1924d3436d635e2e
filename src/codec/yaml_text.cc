#include "codec/yaml_text.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "codec/utf8.h"

namespace firestop::codec {
namespace {

// What is wrong with a character, or nullptr.
const char* why_forbidden(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return nullptr;
  if (code == 0) return "a NUL character";
  if (code < 0x20 || code == 0x7F || (code >= 0x80 && code < 0xA0)) return "a control character";
  if (code == 0x2028 || code == 0x2029) return "a Unicode line separator, which readers do not agree on,";
  if (code == 0x200E || code == 0x200F || code == 0x061C || (code >= 0x202A && code <= 0x202E) ||
      (code >= 0x2066 && code <= 0x2069))
    return "a character that changes the direction of text";
  if (code == 0xFEFF) return "a byte order mark inside the text";
  if ((code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF)) return "a Unicode non-character";
  return nullptr;
}

std::string code_point(char32_t code) {
  char out[16];
  std::snprintf(out, sizeof out, " (U+%04X)", static_cast<unsigned>(code));
  return out;
}

}  // namespace

TextIndex::TextIndex(std::string_view text) : text_(text), starts_{0} {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') starts_.push_back(i + 1);
}

size_t TextIndex::line_of(size_t offset) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  return static_cast<size_t>(after - starts_.begin()) - 1;
}

Position TextIndex::at(size_t offset) const {
  offset = std::min(offset, text_.size());
  const size_t line = line_of(offset);
  const bool onwards = last_offset_ >= starts_[line] && last_offset_ <= offset;
  size_t column = onwards ? last_column_ : 1;
  for (size_t i = onwards ? last_offset_ : starts_[line]; i < offset; ++i)
    if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80) ++column;
  last_offset_ = offset;
  last_column_ = column;
  return {line + 1, column};
}

std::string_view TextIndex::indentation_of(size_t offset) const {
  const size_t start = starts_[line_of(std::min(offset, text_.size()))];
  size_t end = start;
  while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t')) ++end;
  return text_.substr(start, end - start);
}

std::vector<Diagnostic> forbidden_characters(std::string_view text, const TextIndex& index, size_t limit) {
  std::vector<Diagnostic> out;
  const auto report = [&](size_t offset, std::string wrong, std::string expected) {
    const Position where = index.at(offset);
    if (!out.empty() && out.back().where.line == where.line) return;
    out.push_back({"", where, "", std::move(wrong), std::move(expected)});
  };
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    report(0, "the text is UTF-16", "save it as UTF-8");
    return out;
  }
  for (size_t i = 0; i < text.size() && out.size() < limit;) {
    char32_t code = 0;
    const size_t length = decode_utf8(text.substr(i), code);
    if (length == 0) {
      report(i, "a byte that is not UTF-8", "save the text as UTF-8");
      ++i;
      continue;
    }
    if (const char* why = why_forbidden(code)) {
      report(i, why + code_point(code), "remove it, or write it as an escape in a double-quoted text");
    } else if (code == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')) {
      report(i, "a carriage return without a newline", "end lines with \\n or \\r\\n");
    }
    i += length;
  }
  return out;
}

}  // namespace firestop::codec
