#include "egress/alpn.h"

#include <cstdlib>

namespace firestop::egress {

std::string alpn_wire(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255) std::abort();
    wire += static_cast<char>(protocol.size());
    wire += protocol;
  }
  return wire;
}

}  // namespace firestop::egress
