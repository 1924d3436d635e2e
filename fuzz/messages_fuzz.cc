// Both directions. The first byte chooses: a message is decoded, encoded and decoded again, and stays the
// same.
#include "channel/messages.h"
#include "check.h"
#include "codec/frame.h"

using namespace firestop::channel;

namespace {

template <typename Decode>
void check(std::string_view json, Decode decode) {
  auto message = decode(json);
  if (!message) {
    FUZZ_CHECK(message.error().code == "channel.bad_message");
    FUZZ_CHECK(message.error().message.size() < 400);
    return;
  }
  auto encoded = encode(*message);
  if (!encoded) {  // the texts grew when they were made printable
    FUZZ_CHECK(encoded.error().code == "channel.too_large");
    return;
  }
  FUZZ_CHECK(encoded->size() <= firestop::codec::kMaxPayload);
  auto again = decode(*encoded);
  FUZZ_CHECK(again);
  FUZZ_CHECK(*encode(*again) == *encoded);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size == 0) return 0;
  std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    check(json, decode_from_guest);
  } else {
    check(json, decode_from_host);
  }
  return 0;
}
