#include "cli/drawing.h"

#include "base/digest.h"
#include "cli/report.h"
#include "manifest/canonical.h"
#include "manifest/load.h"

namespace firestop::cli {

Result<std::optional<manifest::Manifest>> load_manifest(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(manifest::Loaded loaded, manifest::load_file(args.value_or("FILE", "firestop.yaml")));
  if (loaded.faults.empty()) return std::optional(std::move(loaded.manifest));
  if (context.json)
    return fail("manifest.invalid", loaded.faults.front().headline(), "`firestop check` shows every fault");
  print_faults(context, loaded.faults, loaded.text);
  return std::optional<manifest::Manifest>();
}

Result<std::optional<Drawing>> load_drawing(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(auto manifest, load_manifest(args, context));
  if (!manifest) return std::optional<Drawing>();
  Drawing out;
  out.manifest = std::move(*manifest);
  TRY_ASSIGN(out.lock, manifest::load_lock(manifest::lock_path(out.manifest.file)));
  if (out.lock) TRY(manifest::check_lock(out.manifest, *out.lock));
  TRY_ASSIGN(out.canonical, manifest::canonical_json(out.manifest, out.lock ? &*out.lock : nullptr));
  out.digest = sha256_hex(out.canonical);
  return std::optional(std::move(out));
}

}  // namespace firestop::cli
