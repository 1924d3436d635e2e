// The text before a bundle's pack: no crash, and what is accepted is what it says.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "workspace/bundle_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto header = firestop::workspace::parse_bundle_header(text);
  if (!header) return 0;
  const size_t digits = header->object_format == "sha256" ? 64 : 40;
  if (header->tip.size() != digits || header->ref.empty() || header->bytes > size) std::abort();
  if (text.substr(header->bytes - 2, 2) != "\n\n") std::abort();
  return 0;
}
