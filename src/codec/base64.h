// Base64 (RFC 4648, section 4) with padding, strict: no white space, no bits left over, so that each value
// has one text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace firestop::codec {

std::string encode_base64(std::string_view bytes);
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace firestop::codec
