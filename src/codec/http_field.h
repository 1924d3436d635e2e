// The words that HTTP heads are made of (RFC 9110 section 5), for HTTP/1.1 and HTTP/2 alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firestop::codec {

struct HttpField {
  std::string name;  // as it came; compared without case
  std::string value;
};
using HttpFields = std::vector<HttpField>;  // in order; several of one name stay several

// ASCII, without case.
bool same_name(std::string_view a, std::string_view b);

bool is_token(std::string_view text);  // RFC 9110 section 5.6.2; not empty
// Printable ASCII, bytes over 0x7f, space and tab inside; no CR, LF, NUL or other control character, no space
// or tab at either end.
bool is_field_value(std::string_view text);
// Letters of A to Z and "-", 1 to kMostMethod of them. Methods have case, and readers forget it.
inline constexpr size_t kMostMethod = 24;
// "Content_Length" is a header of its own to some, and Content-Length to CGI and its heirs: refused.
bool is_disguised(std::string_view name);
bool is_method(std::string_view text);
// What may stand in a request's line or :path: "/" and printable ASCII without "#" (a fragment is never
// sent); no "\" in the path, which some readers take for "/".
bool is_origin_form(std::string_view target);

// A host and a port as Host, :authority, CONNECT and absolute-form have them: no user information. The host
// in lower case without its trailing dot, an IPv6 address without brackets as RFC 5952
// writes it; port 0 where none stands.
// Letters, digits, "-", "." and "_" only: no percent-encoding, no bytes over 0x7f. Nothing for all else.
struct HttpAuthority {
  std::string host;
  uint16_t port = 0;
  bool operator==(const HttpAuthority&) const = default;
};
inline constexpr size_t kMostHost = 253;
std::optional<HttpAuthority> parse_authority(std::string_view text);
// "host", "host:port", "[v6]:port"; without the port if it is `default_port`.
std::string authority_text(std::string_view host, uint16_t port, uint16_t default_port);

// The tokens of a list such as Connection's, empty elements skipped (RFC 9110 section 5.6.1). Nothing if an
// element is no token.
std::optional<std::vector<std::string_view>> parse_token_list(std::string_view text);

// Digits only, no sign, no leading zero, below 2^63.
std::optional<uint64_t> parse_content_length(std::string_view text);

}  // namespace firestop::codec
