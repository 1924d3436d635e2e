#include "workspace/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"
#include "base/path.h"

namespace firestop::workspace {
namespace {

bool touch(const std::string& path) {
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  return ::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0 || (errno != ENOENT && exists(path));
}

}  // namespace

Result<std::string> cached_file(const std::string& name,
                                const std::function<Result<void>(const std::string&)>& make) {
  const std::string path = join_path(cache_directory(), name);
  if (touch(path)) return path;
  TRY(make_directories(parent_path(path)));
  TRY_ASSIGN(const UniqueFd lock, open_file(path + ".lock", O_RDWR | O_CREAT));
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return fail_errno("cache.lock", "cannot lock " + path + ".lock");
  if (touch(path)) return path;
  // Under the lock the temporary file is nobody else's: what a dead maker left may go.
  const std::string temporary = path + ".part";
  ::unlink(temporary.c_str());
  if (auto made = make(temporary); !made) {
    ::unlink(temporary.c_str());
    return tl::unexpected<Error>(made.error());
  }
  TRY_ASSIGN(const UniqueFd file, open_file(temporary, O_RDONLY));
  if (::fsync(file.get()) != 0) return fail_errno("cache.write", "cannot sync " + temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return fail_errno("cache.write", "cannot rename " + temporary);
  return path;
}

Result<TemporaryDirectory> TemporaryDirectory::make_at(const std::string& path) {
  TRY(make_directories(parent_path(path)));
  TRY(remove_tree(path));
  if (::mkdir(path.c_str(), 0700) != 0) return fail_errno("file.mkdir", "cannot make " + path);
  return TemporaryDirectory(path);
}

TemporaryDirectory::~TemporaryDirectory() {
  if (!path_.empty()) (void)remove_tree(path_);
}

}  // namespace firestop::workspace
