// The first root file system of a guest: our init and the kernel's modules, as a cpio archive ("newc",
// Documentation/driver-api/early-userspace/buffer-format.rst). Deterministic: all times and owners are 0.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/kernel.h"

namespace firestop::image {

class CpioWriter {
 public:
  void add_directory(std::string_view path);
  void add_file(std::string_view path, mode_t permissions, std::string_view bytes);
  void add_character_device(std::string_view path, mode_t permissions, unsigned major, unsigned minor);
  std::string finish();  // the archive; the writer is empty afterwards

 private:
  void add(std::string_view path, mode_t mode, std::string_view bytes, unsigned major, unsigned minor);

  std::string out_;
  uint32_t serial_ = 0;
};

// /init, /modules/*.ko, /modules.order (one file name a line, in the order of loading), the empty folders
// that init mounts on, and /dev/console, without which the kernel gives PID 1 no descriptors at all.
std::string make_initramfs(std::string_view init, const std::vector<Module>& modules);

}  // namespace firestop::image
