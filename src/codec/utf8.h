// UTF-8 (RFC 3629): shortest form, no surrogates, up to U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace firestop::codec {

// Bytes of the well-formed sequence that `text` begins with, its code point in `out`; 0 if there is none.
size_t decode_utf8(std::string_view text, char32_t& out);
void append_utf8(std::string& out, char32_t code_point);

bool is_utf8(std::string_view text);
// Nothing but printable ASCII.
bool is_plain(std::string_view text);
// For showing to people what others wrote: at most `max_bytes`, and U+FFFD in the place of malformed bytes,
// of control characters other than newline and tab, and of characters that turn the direction of text around.
std::string printable(std::string_view text, size_t max_bytes);

}  // namespace firestop::codec
