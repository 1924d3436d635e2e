// ALPN's lists (RFC 7301) on the wire.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firestop::egress {

// Length and name of each. Names that do not fit (empty, over 255 bytes) are a fault of ours: aborts.
std::string alpn_wire(const std::vector<std::string>& protocols);

}  // namespace firestop::egress
