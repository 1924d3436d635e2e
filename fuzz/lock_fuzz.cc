// Any bytes as a lock: what is accepted is written and read back as itself, and can be signed.
#include <cstddef>
#include <cstdint>

#include "base/path.h"
#include "check.h"
#include "manifest/canonical.h"
#include "manifest/lock.h"

using namespace firestop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lock = manifest::parse_lock(text, "firestop.lock");
  if (!lock) return 0;
  for (const auto& [path, repository] : lock->repositories) {
    FUZZ_CHECK(why_not_relative_path(path).empty());
    FUZZ_CHECK(repository.commit.size() == (repository.object_format == "sha1" ? 40u : 64u));
    FUZZ_CHECK(!repository.ref.starts_with('-'));
  }
  FUZZ_CHECK(lock->recipe.empty() == lock->image_digest.empty());
  const auto again = manifest::parse_lock(lock->to_text(), "firestop.lock");
  FUZZ_CHECK(again.has_value() && *again == *lock);
  manifest::Manifest manifest;
  FUZZ_CHECK(manifest::canonical_json(manifest, &*lock).has_value());
  (void)manifest::check_lock(manifest, *lock);
  return 0;
}
