#include "manifest/needs.h"

namespace firestop::manifest {

Result<void> check_supported(const Manifest& manifest) {
  std::string needs;
  const auto need = [&](const std::string& line) { needs += "\n  " + line; };
  if (manifest.kind == Kind::kVerdict) need("kind: verdict runs are not available");
  if (!manifest.image.oci.empty())
    need("image: images of registries are not available; name a recipe, such as agent-base");
  for (const auto& entry : manifest.entries)
    if (!entry.host.empty())
      need("workspace.entries." + entry.path +
           ".host: only repositories below the manifest's folder are available");
  if (needs.empty()) return {};
  return fail(
      "manifest.unsupported",
      manifest.file + ": this version of Firestop cannot give or enforce what the manifest says:" + needs,
      "nothing was started; `firestop explain` shows what the manifest grants");
}

}  // namespace firestop::manifest
