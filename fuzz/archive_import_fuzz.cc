// An archive from a sandbox, unpacked into a directory in memory: no crash, nothing outside, no setuid bit.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "workspace/unpack.h"

namespace {

void check_below(const std::string& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           folder, std::filesystem::directory_options::skip_permission_denied)) {
    struct stat status{};
    if (::lstat(entry.path().c_str(), &status) != 0) continue;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode)) std::abort();
    if (status.st_mode & (S_ISUID | S_ISGID)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string base = [] {
    char name[] = "/dev/shm/firestop-fuzz-XXXXXX";
    return std::string(::mkdtemp(name));
  }();
  const std::string root = base + "/inside";
  if (::mkdir(root.c_str(), 0700) != 0) std::abort();
  const firestop::UniqueFd archive(::memfd_create("archive", MFD_CLOEXEC));
  if (!firestop::write_all(archive.get(), {reinterpret_cast<const char*>(data), size})) std::abort();
  ::lseek(archive.get(), 0, SEEK_SET);
  {
    const firestop::UniqueFd folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)firestop::workspace::unpack_archive(archive.get(), folder.get(), {1u << 20, 64});
  }
  check_below(root);
  if (!firestop::remove_tree(root)) std::abort();
  size_t beside = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(base)) ++beside;
  if (beside != 0) std::abort();
  return 0;
}
