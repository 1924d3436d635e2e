// What is read as an address or a network is written as one that is read again; nothing is both an address
// and an odd spelling of one; what inet_aton(3) takes is one of the two.
#include <arpa/inet.h>

#include "check.h"
#include "codec/address.h"

using namespace firestop::codec;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto address = Address::parse(text);
  FUZZ_CHECK(!(address && odd_address(text)));
  if (address) {
    FUZZ_CHECK(Address::parse(address->to_string()) == address);
    FUZZ_CHECK(range_of(*address).what != nullptr);
    FUZZ_CHECK(Network::parse(address->to_string() + "/0").has_value() ==
               (address->to_string() == "0.0.0.0" || address->to_string() == "::"));
  }
  in_addr aton{};
  // inet_aton stops at white space and reads up to a NUL.
  if (text.find_first_of(std::string_view(" \t\n\v\f\r\0", 7)) == std::string::npos &&
      ::inet_aton(text.c_str(), &aton))
    FUZZ_CHECK(address || odd_address(text));
  if (const auto network = Network::parse(text)) {
    FUZZ_CHECK(network->contains(network->first()));
    FUZZ_CHECK(Network::parse(network->to_string()) == network);
  }
  return 0;
}
