#include "egress/mapping.h"

#include "codec/address.h"
#include "codec/http_field.h"
#include "codec/utf8.h"

namespace firestop::egress {

Result<Mapping> parse_mapping(std::string_view text) {
  const auto bad = [&](const char* why) {
    return fail("mapping.bad", codec::printable(text, 400) + ": " + why,
                "write it as api.example.com:443=127.0.0.1:8443");
  };
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return bad("it is not of the form HOST:PORT=ADDRESS:PORT");
  const auto from = codec::parse_authority(text.substr(0, equals));
  if (!from || from->port == 0) return bad("no host and port stand before '='");
  const auto to = codec::parse_authority(text.substr(equals + 1));
  const auto address = to ? codec::Address::parse(to->host) : std::nullopt;
  if (!address || to->port == 0) return bad("no address and port stand behind '='");
  return Mapping{{from->host, from->port}, address->with_port(to->port)};
}

std::string to_string(const Mapping& mapping) {
  return codec::authority_text(mapping.from.host, mapping.from.port, 0) + "=" + mapping.to;
}

}  // namespace firestop::egress
