#include "codec/http_field.h"

#include <algorithm>
#include <array>

#include "codec/address.h"

namespace firestop::codec {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr std::array<bool, 256> token_table() {
  std::array<bool, 256> table{};
  for (char c = 'a'; c <= 'z'; ++c) table[static_cast<uint8_t>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) table[static_cast<uint8_t>(c)] = true;
  for (char c = '0'; c <= '9'; ++c) table[static_cast<uint8_t>(c)] = true;
  for (char c : {'!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~'}) {
    table[static_cast<uint8_t>(c)] = true;
  }
  return table;
}
constexpr std::array<bool, 256> kToken = token_table();

constexpr auto kValueByte = [] {
  std::array<bool, 256> table{};
  for (size_t byte = 0x20; byte < table.size(); ++byte) table[byte] = byte != 0x7f;
  table['\t'] = true;
  return table;
}();

std::optional<uint16_t> parse_port(std::string_view text) {
  if (text.empty() || text.size() > 5 || text[0] == '0' || !std::all_of(text.begin(), text.end(), is_digit)) {
    return std::nullopt;
  }
  uint32_t port = 0;
  for (char c : text) port = port * 10 + static_cast<uint32_t>(c - '0');
  if (port > UINT16_MAX) return std::nullopt;
  return static_cast<uint16_t>(port);
}

bool is_host(std::string_view host) {
  // "a..b" and ".a" are no names.
  return !host.empty() && host.size() <= kMostHost && host.front() != '.' && host.back() != '.' &&
         host.find("..") == std::string_view::npos && std::all_of(host.begin(), host.end(), [](char c) {
           return is_alpha(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
         });
}

// The one spelling of an IPv6 address.
std::optional<std::string> v6_text(std::string_view host) {
  const auto address = Address::parse(host);
  if (!address || address->is_v4()) return std::nullopt;
  return address->to_string();
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool is_token(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return kToken[static_cast<uint8_t>(c)]; });
}

bool is_field_value(std::string_view text) {
  if (text.empty()) return true;
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  return !blank(text.front()) && !blank(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return kValueByte[static_cast<uint8_t>(c)]; });
}

bool is_method(std::string_view text) {
  return !text.empty() && text.size() <= kMostMethod &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; });
}

bool is_origin_form(std::string_view target) {
  if (!target.starts_with('/')) return false;
  if (target.substr(0, target.find('?')).find('\\') != std::string_view::npos) return false;
  return std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

std::optional<HttpAuthority> parse_authority(std::string_view text) {
  HttpAuthority out;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    auto host = v6_text(text.substr(1, close - 1));
    if (!host) return std::nullopt;
    out.host = std::move(*host);
    port = text.substr(close + 1);
  } else {
    std::string_view host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
    if (host.ends_with('.')) host.remove_suffix(1);
    if (!is_host(host)) return std::nullopt;
    out.host.resize(host.size());
    std::transform(host.begin(), host.end(), out.host.begin(), lower);
  }
  if (port.empty()) return out;
  const auto number = port[0] == ':' ? parse_port(port.substr(1)) : std::nullopt;
  if (!number) return std::nullopt;
  out.port = *number;
  return out;
}

std::string authority_text(std::string_view host, uint16_t port, uint16_t default_port) {
  std::string out;
  if (host.find(':') != std::string_view::npos) {
    out.append("[").append(host).append("]");
  } else {
    out = host;
  }
  if (port != 0 && port != default_port) out.append(":").append(std::to_string(port));
  return out;
}

std::optional<std::vector<std::string_view>> parse_token_list(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view element = text.substr(0, comma);
    while (!element.empty() && (element.front() == ' ' || element.front() == '\t')) element.remove_prefix(1);
    while (!element.empty() && (element.back() == ' ' || element.back() == '\t')) element.remove_suffix(1);
    if (!element.empty()) {
      if (!is_token(element)) return std::nullopt;
      out.push_back(element);
    }
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

std::optional<uint64_t> parse_content_length(std::string_view text) {
  if (text.empty() || text.size() > 19 || (text[0] == '0' && text.size() > 1)) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  uint64_t value = 0;  // 19 digits are less than 2^64
  for (char c : text) value = value * 10 + static_cast<uint64_t>(c - '0');
  if (value >= uint64_t{1} << 63) return std::nullopt;
  return value;
}

bool is_disguised(std::string_view name) {
  if (name.find('_') == std::string_view::npos) return false;
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return same_name(dashed, "content-length") || same_name(dashed, "transfer-encoding") ||
         same_name(dashed, "host");
}

}  // namespace firestop::codec
