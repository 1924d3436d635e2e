// What is accepted is UTF-8, comes back from both writers as the same value, and has one canonical form.
#include "check.h"
#include "codec/json.h"
#include "codec/utf8.h"

using namespace firestop::codec;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto value = parse_json(text);
  if (!value) {
    FUZZ_CHECK(value.error().code == "json.bad");
    return 0;
  }
  FUZZ_CHECK(is_utf8(text));
  for (const std::string& written : {write_json(*value), write_json_pretty(*value)}) {
    auto again = parse_json(written);
    FUZZ_CHECK(again && *again == *value);
  }
  auto canonical = write_canonical_json(*value);
  if (!canonical) return 0;
  auto again = parse_json(*canonical);
  FUZZ_CHECK(again);
  // A double such as 1e17 is written as an integer beyond 2^53: a fixed point unless that is refused.
  auto twice = write_canonical_json(*again);
  FUZZ_CHECK(!twice || *twice == *canonical);
  return 0;
}
