#include "credentials/forms.h"

#include <algorithm>

#include "codec/base64.h"

namespace firestop::credentials {
namespace {

constexpr size_t kMore = 4;  // bytes beyond the known ones, before a beginning is held back

std::string url_alphabet(std::string text) {
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

void add_both_alphabets(std::vector<Form>& out, Form form) {
  Form other = form;
  other.bytes = url_alphabet(other.bytes);
  other.instead = url_alphabet(other.instead);
  if (other.bytes != form.bytes) out.push_back(std::move(other));
  out.push_back(std::move(form));
}

std::string without_padding(std::string text) {
  while (text.ends_with('=')) text.pop_back();
  return text;
}

// The characters of base64 that depend on nothing but `text`, when `offset` bytes (modulo 3) stand before it.
std::string inside_base64(std::string_view text, size_t offset) {
  const std::string all = codec::encode_base64(std::string(offset, '\0') + std::string(text));
  const size_t first = offset == 0 ? 0 : offset + 1, whole = (offset + text.size()) * 8 / 6;
  return whole > first ? all.substr(first, whole - first) : "";
}

std::string as_long_as(std::string text, size_t length, char filler) {
  text.resize(length, filler);
  return text;
}

std::string hex(std::string_view text, std::string_view digits) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}  // namespace

std::vector<Form> forms_of(std::string_view text, size_t known, std::string_view instead) {
  std::vector<Form> out;
  out.push_back({Form::Kind::kPlain, std::string(text), std::string(instead), known + kMore});
  // The finder passes over blanks where it undoes escapes.
  std::string dense(text);
  std::erase_if(dense, [](char c) { return c == ' ' || c == '\t'; });
  if (dense != text) out.push_back({Form::Kind::kPlain, dense, std::string(instead), known + kMore});
  for (size_t offset = 0; offset < 3; ++offset) {
    std::string bytes = inside_base64(text, offset);
    if (bytes.size() < 8) continue;  // of so little, anything could be
    const size_t length = bytes.size();
    add_both_alphabets(
        out, {Form::Kind::kBase64Inside, std::move(bytes),
              as_long_as(inside_base64(instead, offset), length, 'A'), (known + kMore) * 8 / 6 + 2});
  }
  for (const std::string_view digits : {"0123456789abcdef", "0123456789ABCDEF"})
    out.push_back({Form::Kind::kHex, hex(text, digits),
                   as_long_as(hex(instead, digits), 2 * text.size(), '0'), 2 * (known + kMore)});
  return out;
}

std::vector<Form> base64_forms(std::string_view before, std::string_view text, std::string_view instead) {
  const auto encode = [&](std::string_view what) {
    return without_padding(codec::encode_base64(std::string(before) + std::string(what)));
  };
  std::vector<Form> out;
  add_both_alphabets(out, {Form::Kind::kBase64, encode(text), encode(instead), kMore * 2});
  return out;
}

}  // namespace firestop::credentials
