#include "guest/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

namespace firestop::guest {
namespace {

int open_with(int directory, const std::string& path, int flags, mode_t mode, uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.mode = (flags & O_CREAT) ? mode : 0;
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how));
}

}  // namespace

Result<Inside> Inside::open(const std::string& root) {
  Inside inside;
  inside.root_.reset(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!inside.root_.valid()) return fail_errno("guest.inside", "cannot open " + root);
  return inside;
}

Result<UniqueFd> Inside::open_at(const std::string& path, int flags, mode_t mode) const {
  UniqueFd fd(open_with(root_.get(), path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS));
  if (!fd.valid()) return fail_errno("guest.inside", "cannot open " + path + " in the container");
  return fd;
}

bool Inside::exists(const std::string& path) const {
  return open_at(path, O_PATH).has_value();
}

Result<std::string> Inside::read(const std::string& path) const {
  auto fd = open_at(path, O_RDONLY);
  if (!fd) {
    if (fd.error().sys_errno == ENOENT) return std::string();
    return Unexpected(std::move(fd).error());
  }
  return read_all(fd->get(), 1u << 20);
}

Result<void> Inside::write(const std::string& path, std::string_view data, mode_t mode) const {
  TRY_ASSIGN(const UniqueFd fd, open_at(path, O_WRONLY | O_CREAT | O_TRUNC, mode));
  return write_all(fd.get(), data);
}

Result<UniqueFd> Inside::make_directories(const std::string& path, Owner owner) const {
  UniqueFd at(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 3));
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    const bool made = ::mkdirat(at.get(), name.c_str(), 0755) == 0;
    if (!made && errno != EEXIST)
      return fail_errno("guest.inside", "cannot make " + path + " in the container");
    UniqueFd next(open_with(at.get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS));
    if (!next.valid()) return fail_errno("guest.inside", "cannot enter " + path + " in the container");
    if (made && ::fchownat(next.get(), "", owner.uid, owner.gid, AT_EMPTY_PATH) != 0)
      return fail_errno("guest.inside", "cannot give away " + path + " in the container");
    at = std::move(next);
  }
  return at;
}

std::string path_of(const UniqueFd& fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

}  // namespace firestop::guest
