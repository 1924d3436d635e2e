// Any bytes as an SSH signature: what is accepted has one normal armor, which reads as the same signature.
#include <cstddef>
#include <cstdint>

#include "check.h"
#include "manifest/sshsig.h"

using namespace firestop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto signature = manifest::parse_signature(text);
  if (!signature) return 0;
  FUZZ_CHECK(!signature->key_type.empty() && !signature->public_key.empty());
  FUZZ_CHECK(signature->certificate_time().has_value() <= signature->is_certificate());
  const auto again = manifest::parse_signature(signature->armored());
  FUZZ_CHECK(again.has_value());
  FUZZ_CHECK(again->blob == signature->blob && again->armored() == signature->armored());
  return 0;
}
