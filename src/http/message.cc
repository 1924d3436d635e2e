#include "http/message.h"

#include <algorithm>

namespace firestop::http {

std::optional<Authority> parse_authority(std::string_view text, uint16_t default_port) {
  auto read = codec::parse_authority(text);
  if (!read) return std::nullopt;
  return Authority{std::move(read->host), read->port == 0 ? default_port : read->port};
}

std::string to_string(const Authority& authority, uint16_t default_port) {
  return codec::authority_text(authority.host, authority.port, default_port);
}

const Header* find_header(const Headers& headers, std::string_view name) {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const Header& h) { return same_name(h.name, name); });
  return found == headers.end() ? nullptr : &*found;
}

void remove_headers(Headers& headers, std::string_view name) {
  std::erase_if(headers, [&](const Header& h) { return same_name(h.name, name); });
}

}  // namespace firestop::http
