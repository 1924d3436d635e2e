// HTTP heads as values, the same for HTTP/1.1 and HTTP/2 (RFC 9110). A codec that makes one has checked it:
// names are tokens, values hold no CR, LF or NUL, framing headers have become `body`, and there is one host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/http_field.h"

namespace firestop::http {

using Header = codec::HttpField;    // the name as it came; compared without case
using Headers = codec::HttpFields;  // in order; several of one name stay several
using codec::same_name;             // ASCII, without case

const Header* find_header(const Headers& headers, std::string_view name);
void remove_headers(Headers& headers, std::string_view name);

// What follows a head. Content-Length and Transfer-Encoding are never among the headers. In an answer to HEAD
// and in a 304 it says what a GET would have brought, and no bytes follow.
struct Body {
  enum class Kind { kNone, kLength, kUnknown };  // unknown: chunked, HTTP/2 without length, or until close
  Kind kind = Kind::kNone;
  uint64_t length = 0;
};

struct Authority {
  std::string host;  // lower case, without trailing dot; an IPv6 address without brackets
  uint16_t port = 0;
  bool operator==(const Authority&) const = default;
};

// "host", "host:port", "[v6]:port" (RFC 3986 section 3.2) in the form above: no user information, no empty
// host, no escapes, at most codec::kMostHost bytes of host. Nothing when it is not one. Whether the name is a
// sensible one is the policy's.
std::optional<Authority> parse_authority(std::string_view text, uint16_t default_port);
std::string to_string(const Authority& authority,
                      uint16_t default_port);  // without the port that is the default

struct RequestHead {
  std::string method;
  std::string scheme;   // "https", "http"
  Authority authority;  // Host or :authority, never among the headers
  std::string target;   // "/path?query" as it came, or "*"
  Headers headers;      // without connection-specific ones (RFC 9110 section 7.6.1), but "te: trailers" stays
  std::string upgrade;  // "websocket" when a proper upgrade is asked for (RFC 6455, RFC 8441), else ""
  bool expects_continue = false;
  Body body;
};

struct ResponseHead {
  int status = 0;  // 100 to 599
  Headers headers;
  Body body;
};

}  // namespace firestop::http
