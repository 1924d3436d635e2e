// A root file system's archive: refused, or an image that can be laid out and written.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "check.h"
#include "image/tar_import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string image = "/dev/shm/firestop-fuzz-" + std::to_string(getpid());
  const firestop::UniqueFd tar(memfd_create("tar", MFD_CLOEXEC));
  if (write(tar.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  lseek(tar.get(), 0, SEEK_SET);
  const auto result = firestop::image::root_from_tar(
      tar.get(), image, {.remove = {"/r/*"}, .max_bytes = 1u << 20, .max_depth = 16});
  FUZZ_CHECK(!result || (*result != 0 && *result % 4096 == 0));
  ::unlink(image.c_str());
  return 0;
}
