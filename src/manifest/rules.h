// What names, hosts, refs and paths may look like. Each answers why a text is not one, or empty if it is.
#pragma once

#include <string>
#include <string_view>

namespace firestop::manifest {

std::string why_not_run_name(std::string_view name);   // [a-z0-9][a-z0-9-]{0,62}
std::string why_not_account(std::string_view name);    // POSIX portable, lower case, not a system account
std::string why_not_bind_name(std::string_view name);  // [A-Za-z0-9][A-Za-z0-9_-]{0,62}
std::string why_not_variable(std::string_view name);   // [A-Za-z_][A-Za-z0-9_]*, not one that Firestop sets
std::string why_not_ref(std::string_view ref);         // a branch, tag or commit; git-check-ref-format(1)
std::string why_not_image(std::string_view image);     // a recipe, or oci:NAME@sha256:HEX
// RFC 1123 names in lower case with at least two labels, "*." or "**." before at least two labels.
std::string why_not_host(std::string_view host);
std::string why_not_request_path(std::string_view path);    // of an egress rule: /v1/**
std::string why_not_ref_pattern(std::string_view pattern);  // refs/heads/agent/**
std::string why_not_push_option(std::string_view option);   // ci.skip, merge_request.title=*
std::string why_not_header(std::string_view name);          // RFC 9110 token that origins do not reflect

// Lower case, without the trailing dot: what host names are compared as.
std::string canonical_host(std::string_view host);

// PEM certificates (RFC 7468): blocks of base64 that begin as DER does. Whether they verify anything is for
// TLS.
std::string why_not_certificates(std::string_view pem);

// A network in CIDR notation, IPv4 or IPv6.
struct Cidr {
  std::string why_not;          // empty if it is one
  bool public_address = false;  // whether its first address is reachable by everyone
  std::string special;  // "a loopback address": what all of several addresses are; rules have them one by one
};
Cidr read_cidr(std::string_view text);

}  // namespace firestop::manifest
