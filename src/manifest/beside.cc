#include "manifest/beside.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"

namespace firestop::manifest {

Result<std::optional<std::string>> read_beside(const std::string& path, uint64_t limit) {
  auto fd = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) {
    if (fd.error().sys_errno == ENOENT) return std::optional<std::string>();
    return tl::unexpected(fd.error());
  }
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return fail_errno("file.read", path);
  if (!S_ISREG(st.st_mode)) return fail("file.not_regular", path + " is no regular file");
  auto data = read_all(fd->get(), limit);
  if (!data) return wrap(data.error(), path);
  return std::optional<std::string>(std::move(*data));
}

}  // namespace firestop::manifest
