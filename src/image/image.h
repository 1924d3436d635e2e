// Guest kernels and root images: built once, found by content.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/executables.h"

namespace firestop::image {

// What a VM boots from. Paths are absolute and of files that nobody changes any more.
struct BootFiles {
  std::string name;            // "agent-base"
  std::string digest;          // SHA-256 over the three files' digests: names this image
  std::string kernel;          // ELF vmlinux (PVH)
  std::string kernel_release;  // "6.1.0-57-cloud-amd64"
  std::string initramfs;       // cpio: guest init and modules
  std::string root;            // EROFS
  std::string root_digest;     // its SHA-256
  // What the digests of its executables are kept in, and that text's own digest (executables.h); of find(),
  // empty until ensure() has made it.
  std::string executables, executables_digest;
};

// One line at a time, for people ("agent-base: packages 40%"); may be empty.
using Progress = std::function<void(const std::string&)>;

// Finds the image in the cache, or builds it (mmdebstrap without root, in user namespaces; needs the
// network once). Two that ask at once build once. `recipes` is searched first, then the installed ones.
Result<BootFiles> ensure(const std::string& name, const Progress& progress);
// The digests of what an image can execute. "image.bad_index": somebody changed or exchanged them.
Result<Executables> executables_of(const BootFiles& files);
// The cached image, or an error ("image.not_built") without building.
Result<BootFiles> find(const std::string& name);

struct Listed {
  std::string name, digest, kernel_release;
  uint64_t bytes = 0;    // on disk
  int64_t created = 0;   // seconds since 1970
  bool current = false;  // the one that ensure() would take
};
Result<std::vector<Listed>> list();
// Removes what no recipe leads to any more (all = everything); returns bytes freed.
Result<uint64_t> prune(bool all);

}  // namespace firestop::image
