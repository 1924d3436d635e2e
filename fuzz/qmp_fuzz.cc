// What a QEMU that was taken over could say on its monitor: lines, cut anywhere. However they arrive, the
// same values come out, and nothing after the first error.
#include <cstdint>

#include "check.h"
#include "vmm/qmp.h"

namespace {

std::string read(std::string_view bytes, size_t step) {
  firestop::vmm::QmpParser parser;
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += step) {
    parser.feed(bytes.substr(at, step));
    for (;;) {
      const auto next = parser.next();
      if (!next) {
        parser.feed("{}\n");
        FUZZ_CHECK(!parser.next());
        return out + "error";
      }
      if (!*next) break;
      FUZZ_CHECK((*next)->as_object() != nullptr);
      out += firestop::codec::write_json(**next) + "\n";
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FUZZ_CHECK(read(bytes, 7) == read(bytes, 4096));
  return 0;
}
