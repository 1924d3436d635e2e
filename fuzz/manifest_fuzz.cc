// Any bytes as a manifest: either it has faults, or what it says holds the loader's promises.
#include <cstddef>
#include <cstdint>

#include "base/path.h"
#include "check.h"
#include "manifest/explain.h"
#include "manifest/load.h"
#include "manifest/needs.h"

using namespace firestop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto loaded = manifest::load_text("/nonexistent/firestop.yaml", text);
  if (!loaded.faults.empty()) {
    const std::string shown = render(loaded.faults, loaded.text);
    FUZZ_CHECK(shown.find('\x1b') == std::string::npos);
    return 0;
  }
  const auto& manifest = loaded.manifest;
  FUZZ_CHECK(!manifest.name.empty() && !manifest.run_as.empty() && manifest.run_as != "root");
  FUZZ_CHECK(manifest.rating.count() >= 1000);
  for (const auto& entry : manifest.entries) {
    FUZZ_CHECK(why_not_relative_path(entry.path).empty());
    FUZZ_CHECK((entry.permissions & ~0777u) == 0);
    FUZZ_CHECK(entry.source.path.empty() || why_not_relative_path(entry.source.path).empty());
    FUZZ_CHECK(entry.repo.empty() || entry.repo == "." || why_not_relative_path(entry.repo).empty());
  }
  for (const auto& rule : manifest.egress) FUZZ_CHECK(rule.host.empty() != rule.cidr.empty());
  const std::string page = manifest::explain_text(manifest, manifest::Colour::kOff);
  FUZZ_CHECK(page.find('\x1b') == std::string::npos && page.find('\0') == std::string::npos);
  FUZZ_CHECK(codec::parse_json(codec::write_json(manifest::explain_json(manifest))).has_value());
  (void)manifest::check_supported(manifest);
  return 0;
}
