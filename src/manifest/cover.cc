#include "manifest/cover.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace firestop::manifest {
namespace {

bool contains(const std::vector<uint16_t>& ports, uint16_t port) {
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

struct Network {
  int family = 0;  // 0: not one
  std::array<unsigned char, 16> address{};
  int bits = 0;
};

Network read_network(std::string_view text) {
  Network out;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return out;
  const std::string name(text.substr(0, slash));
  const int family = name.find(':') == std::string::npos ? AF_INET : AF_INET6;
  const auto [end, error] = std::from_chars(text.data() + slash + 1, text.data() + text.size(), out.bits);
  if (error != std::errc() || end != text.data() + text.size() || out.bits < 0) return out;
  if (::inet_pton(family, name.c_str(), out.address.data()) == 1) out.family = family;
  return out;
}

bool all_covered(const std::vector<std::string>& wide, const std::vector<std::string>& narrow) {
  if (wide.empty()) return true;
  if (narrow.empty()) return false;
  return std::all_of(narrow.begin(), narrow.end(), [&](const auto& one) { return any_covers(wide, one); });
}

}  // namespace

bool option_covered(const std::vector<std::string>& wide, std::string_view narrow) {
  return std::any_of(wide.begin(), wide.end(), [&](std::string_view one) {
    return one == narrow || (one.ends_with('*') && narrow.starts_with(one.substr(0, one.size() - 1)));
  });
}

namespace {

bool git_covers(const EgressRule::Git& wide, const EgressRule::Git& narrow) {
  return wide.repository == narrow.repository && (wide.fetch || !narrow.fetch) &&
         std::all_of(narrow.push.begin(), narrow.push.end(),
                     [&](const auto& ref) { return !wide.push.empty() && any_covers(wide.push, ref); }) &&
         (wide.deletes || !narrow.deletes) &&
         std::all_of(narrow.options.begin(), narrow.options.end(),
                     [&](const auto& option) { return option_covered(wide.options, option); });
}

}  // namespace

bool host_covers(std::string_view wide, std::string_view narrow) {
  if (wide == narrow) return true;
  if (wide.starts_with("**.")) return narrow.ends_with(wide.substr(2));
  if (!wide.starts_with("*.") || narrow.starts_with("*")) return false;
  const size_t dot = narrow.find('.');
  return dot != std::string_view::npos && dot > 0 && narrow.substr(dot) == wide.substr(1);
}

bool cidr_covers(std::string_view wide, std::string_view narrow) {
  if (wide == narrow) return true;
  const Network a = read_network(wide), b = read_network(narrow);
  if (a.family == 0 || a.family != b.family || a.bits > b.bits || a.bits > 128) return false;
  for (int bit = 0; bit < a.bits; ++bit) {
    const auto byte = static_cast<size_t>(bit / 8);
    if (((a.address[byte] ^ b.address[byte]) >> (7 - bit % 8)) & 1) return false;
  }
  return true;
}

bool pattern_covers(std::string_view wide, std::string_view narrow) {
  if (wide == narrow) return true;
  if (!wide.ends_with("/**")) return false;
  const std::string_view folder = wide.substr(0, wide.size() - 2);  // with its slash
  return folder.find('*') == std::string_view::npos && narrow.size() > folder.size() &&
         narrow.starts_with(folder);
}

bool hosts_meet(std::string_view a, std::string_view b) {
  if (host_covers(a, b) || host_covers(b, a)) return true;
  // Two wildcards of which neither covers the other: *.b.example and **.example do, the rest shares nothing.
  const auto rest = [](std::string_view host) {
    return host.substr(host.find('*') == 0 ? host.find('.') : 0);
  };
  return a.starts_with("**.") && b.starts_with("*")   ? rest(b).ends_with(rest(a))
         : b.starts_with("**.") && a.starts_with("*") ? rest(a).ends_with(rest(b))
                                                      : false;
}

namespace {

std::vector<std::string_view> split(std::string_view pattern) {
  std::vector<std::string_view> out;
  for (size_t at = pattern.starts_with('/') ? 1 : 0; at <= pattern.size();) {
    const size_t end = std::min(pattern.find('/', at), pattern.size());
    out.push_back(pattern.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Whether one sequence fits both; what is `any` stands for any number of items. A table, and not recursion,
// so that a pattern of many stars costs no more than the lengths multiplied. reach[i][j]: the first i items
// of a and the first j of b can stand for one beginning.
template <typename List, typename Item, typename Meet>
bool sequences_meet(const List& a, const List& b, const Item& any, Meet meet) {
  std::vector<std::vector<char>> reach(a.size() + 1, std::vector<char>(b.size() + 1, 0));
  reach[0][0] = 1;
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (!reach[i][j]) continue;
      const bool more_a = i < a.size(), more_b = j < b.size();
      const bool any_a = more_a && a[i] == any, any_b = more_b && b[j] == any;
      if (any_a || (any_b && more_a)) reach[i + 1][j] = 1;
      if (any_b || (any_a && more_b)) reach[i][j + 1] = 1;
      if (more_a && more_b && !any_a && !any_b && meet(a[i], b[j])) reach[i + 1][j + 1] = 1;
    }
  return reach[a.size()][b.size()] != 0;
}

bool parts_meet(std::string_view a, std::string_view b) {
  return sequences_meet(a, b, '*', [](char x, char y) { return x == y; });
}

}  // namespace

bool patterns_meet(std::string_view a, std::string_view b) {
  return sequences_meet(split(a), split(b), std::string_view("**"), parts_meet);
}

bool folder_covers(std::string_view wide, std::string_view narrow) {
  return wide == narrow || wide == "." ||
         (narrow.size() > wide.size() && narrow.starts_with(wide) && narrow[wide.size()] == '/');
}

bool any_covers(const std::vector<std::string>& wide, std::string_view narrow) {
  return wide.empty() ||
         std::any_of(wide.begin(), wide.end(), [&](const auto& one) { return pattern_covers(one, narrow); });
}

bool same_kind(const EgressRule& a, const EgressRule& b) {
  return a.cidr.empty() == b.cidr.empty() && a.git.has_value() == b.git.has_value();
}

bool destination_covers(const EgressRule& wide, const EgressRule& narrow) {
  return same_kind(wide, narrow) &&
         (wide.cidr.empty() ? host_covers(wide.host, narrow.host) : cidr_covers(wide.cidr, narrow.cidr));
}

bool rule_covers(const EgressRule& wide, const EgressRule& narrow) {
  return destination_covers(wide, narrow) && wide.protocol == narrow.protocol &&
         wide.credential == narrow.credential && (wide.private_addresses || !narrow.private_addresses) &&
         (wide.websocket || !narrow.websocket) && (wide.plain_text || !narrow.plain_text) &&
         (wide.placeholders_in_body == narrow.placeholders_in_body || narrow.placeholders_in_body.empty() ||
          wide.placeholders_in_body == "all") &&
         (wide.ca == narrow.ca || narrow.ca.empty()) &&
         std::all_of(narrow.ports.begin(), narrow.ports.end(),
                     [&](uint16_t port) { return contains(wide.ports, port); }) &&
         all_covered(wide.methods, narrow.methods) && all_covered(wide.paths, narrow.paths) &&
         (!wide.git || (narrow.git && git_covers(*wide.git, *narrow.git)));
}

bool same_rule(const EgressRule& a, const EgressRule& b) {
  return rule_covers(a, b) && rule_covers(b, a);
}

}  // namespace firestop::manifest
