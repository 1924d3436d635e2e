// The path of a request in the one form that rules are compared with, or why there is no one form: what two
// servers could take for two places is never matched by a pattern.
//
// Percent-escapes of letters, digits and -._~ are undone, all others stay, in upper case (RFC 3986, section
// 6.2.2); %2F stays an escape and never is a slash. Case stays as it is, the query is no part of it.
#pragma once

#include <string>
#include <string_view>

namespace firestop::egress {

struct RequestPath {
  std::string path;     // "/v1/models"; "*" for OPTIONS *
  std::string why_not;  // not empty: there is no one form, and `path` is not set
};

// `target` as in a request's head: "/path?query" or "*".
RequestPath read_request_path(std::string_view target);

// With its escapes undone, within which there are none: for finding what a server could see in it, never for
// a match.
std::string unescaped(std::string_view path);

// A pattern with its escapes in the same form.
std::string normal_pattern(std::string_view pattern);

// Pattern of a rule, normal: "*" stands for characters of a component but no slash, escaped or not; "**" for
// any number of components, at the end one or more, of which the last may be empty. `path` in the form from
// above.
bool path_matches(std::string_view pattern, std::string_view path);

}  // namespace firestop::egress
