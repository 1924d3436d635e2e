// A kernel image and a module's needs: any bytes give a result or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "image/kernel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto vmlinux = firestop::image::vmlinux_from_bzimage(bytes);
  FUZZ_CHECK(!vmlinux || vmlinux->size() >= 64);
  for (const std::string& need : firestop::image::module_needs(bytes)) {
    FUZZ_CHECK(need.find('\0') == std::string::npos && need.find(',') == std::string::npos);
  }
  return 0;
}
