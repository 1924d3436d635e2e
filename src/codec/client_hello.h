// The first message of a TLS client (RFC 8446 section 4.1.2), read before anything is answered: which server
// it names and which protocols it offers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::codec {

inline constexpr size_t kMostClientHello = 32u << 10;  // bytes on the wire, with the records' headers
inline constexpr size_t kMostHelloRecords = 64;        // that it is cut into
inline constexpr size_t kMostAlpn = 32;

struct ClientHello {
  std::string server_name;  // lower case, without trailing dot; "" if it names none
  std::vector<std::string> alpn;
  // Encrypted Client Hello (0xfe0d): a name inside may differ from `server_name`. Browsers send the extension
  // also without meaning it.
  bool encrypted = false;
};

// Whether bytes that begin so (at least one) can be a TLS client's.
bool may_be_tls(std::string_view bytes);
// The hello that `bytes` begin with; nothing while it is not complete; "tls.bad_hello" for what is no TLS,
// is malformed, names two servers or is larger than the limits. Needs all bytes from the first on each time.
Result<std::optional<ClientHello>> parse_client_hello(std::string_view bytes);

}  // namespace firestop::codec
