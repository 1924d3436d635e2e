// Any bytes as a document of the OpenAI Agents SDK: either it has faults and nothing is made of it, or what
// was made loads and says the same, which import_openai itself holds.
#include <cstddef>
#include <cstdint>

#include "base/path.h"
#include "check.h"
#include "manifest/openai.h"

using namespace firestop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto imported = manifest::import_openai("/nonexistent/sdk.json", text, "agent");
  FUZZ_CHECK(imported.loaded.faults.empty() != imported.text.empty());
  for (const auto& fault : imported.loaded.faults) FUZZ_CHECK(fault.expected != "please report this");
  FUZZ_CHECK(imported.text.find('\x1b') == std::string::npos &&
             imported.text.find('\0') == std::string::npos);
  for (const auto& entry : imported.loaded.manifest.entries) {
    if (imported.text.empty()) break;
    FUZZ_CHECK(why_not_relative_path(entry.path).empty());
    FUZZ_CHECK((entry.permissions & ~0777u) == 0);
  }
  return 0;
}
