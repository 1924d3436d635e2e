// A hello is judged once: no answer changes when more bytes come, and before its end it is "more" or refused.
#include "check.h"
#include "codec/client_hello.h"

using namespace firestop::codec;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto whole = parse_client_hello(bytes);
  const size_t cut = (data[0] | static_cast<size_t>(data[1]) << 8) % (bytes.size() + 1);
  const auto part = parse_client_hello(bytes.substr(0, cut));
  if (!part) FUZZ_CHECK(!whole);
  if (whole && *whole) {
    FUZZ_CHECK(part && (!*part || (*part)->server_name == (*whole)->server_name));
    FUZZ_CHECK(may_be_tls(bytes.substr(0, 1)));
  }
  return 0;
}
