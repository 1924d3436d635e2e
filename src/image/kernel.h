// A Debian kernel package becomes what a microVM boots: the ELF image and the modules that the guest
// loads, in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::image {

struct Module {
  std::string file;  // "virtio_ring.ko"
  std::string bytes;
};

struct Kernel {
  std::string release;  // "6.1.0-57-cloud-amd64"
  std::string vmlinux;
  std::vector<Module> modules;  // each behind those that it needs
};

// The ELF image inside an x86 bzImage (Documentation/x86/boot.rst: setup_sects, payload_offset,
// payload_length). Errors: "image.bad_kernel".
Result<std::string> vmlinux_from_bzimage(std::string_view image);
// The `depends=` of a module's .modinfo, as names ("virtio_ring").
std::vector<std::string> module_needs(std::string_view module);
// Picks what the guest needs out of a linux-image package; a part that the kernel has built in is left
// out. Errors: "image.bad_kernel", "image.bad_data".
Result<Kernel> unpack_kernel(const std::string& deb_path);

}  // namespace firestop::image
