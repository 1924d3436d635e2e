#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace firestop {
namespace {

Result<void> remove_below(int dir_fd, const std::string& path) {
  struct Closer {
    void operator()(DIR* d) const { ::closedir(d); }
  };
  const std::unique_ptr<DIR, Closer> dir(::fdopendir(dir_fd));
  if (!dir) {
    ::close(dir_fd);
    return fail_errno("file.remove", "cannot list " + path);
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  for (const auto& name : names) {
    if (::unlinkat(dirfd(dir.get()), name.c_str(), 0) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM)
      return fail_errno("file.remove", "cannot remove " + path + "/" + name);
    const auto open_sub = [&] {
      return ::openat(dirfd(dir.get()), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    };
    int sub = open_sub();
    if (sub < 0 && errno == EACCES) {
      // A directory that came without permissions of its own is still ours to remove.
      if (::fchmodat(dirfd(dir.get()), name.c_str(), 0700, 0) == 0) sub = open_sub();
    }
    if (sub < 0) return fail_errno("file.remove", "cannot open " + path + "/" + name);
    ::fchmod(sub, 0700);
    TRY(remove_below(sub, path + "/" + name));
    if (::unlinkat(dirfd(dir.get()), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      return fail_errno("file.remove", "cannot remove " + path + "/" + name);
  }
  return {};
}

}  // namespace

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return fail_errno("file.open", "cannot open " + path);
  return UniqueFd(fd);
}

Result<std::string> read_all(int fd, uint64_t limit) {
  std::string out;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("file.read", "cannot read");
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > limit)
      return fail("file.too_large", "more than " + std::to_string(limit) + " bytes");
    out.append(buffer, static_cast<size_t>(n));
  }
}

Result<std::string> read_file(const std::string& path, uint64_t limit) {
  TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDONLY));
  auto data = read_all(fd.get(), limit);
  if (!data) return wrap(data.error(), path);
  return data;
}

Result<void> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("file.write", "cannot write");
    data.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<void> write_file_atomic(const std::string& path, std::string_view data, mode_t mode) {
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return fail_errno("file.write", "cannot create a file beside " + path);
  auto step = [&]() -> Result<void> {
    if (::fchmod(fd.get(), mode) != 0) return fail_errno("file.write", "cannot set the mode of " + temporary);
    TRY(write_all(fd.get(), data));
    if (::fsync(fd.get()) != 0) return fail_errno("file.write", "cannot sync " + temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      return fail_errno("file.write", "cannot replace " + path);
    return {};
  };
  auto done = step();
  if (!done) ::unlink(temporary.c_str());
  return done;
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), mode) == 0 || errno == EEXIST) continue;
    if (errno == EROFS || errno == EACCES) {
      struct stat st{};
      if (::stat(part.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) continue;
      errno = EACCES;
    }
    return fail_errno("file.mkdir", "cannot make directory " + part);
  }
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    return fail("file.mkdir", path + " is not a directory");
  return {};
}

Result<void> remove_tree(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return fail_errno("file.remove", "cannot remove " + path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return fail_errno("file.remove", "cannot open " + path);
  TRY(remove_below(fd, path));
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT)
    return fail_errno("file.remove", "cannot remove " + path);
  return {};
}

Result<void> copy_sparse(const std::string& from, const std::string& to, mode_t mode) {
  TRY_ASSIGN(UniqueFd in, open_file(from, O_RDONLY));
  TRY_ASSIGN(UniqueFd out, open_file(to, O_WRONLY | O_CREAT | O_EXCL, mode));
  struct stat st{};
  if (::fstat(in.get(), &st) != 0) return fail_errno("file.copy", "cannot stat " + from);
  if (::ftruncate(out.get(), st.st_size) != 0) return fail_errno("file.copy", "cannot size " + to);
  std::vector<char> buffer(1u << 20);
  off_t at = 0;
  while (at < st.st_size) {
    const off_t data = ::lseek(in.get(), at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return fail_errno("file.copy", "cannot seek in " + from);
    const off_t hole = ::lseek(in.get(), data, SEEK_HOLE);
    if (hole < 0) return fail_errno("file.copy", "cannot seek in " + from);
    for (at = data; at < hole;) {
      const auto want = std::min<size_t>(buffer.size(), static_cast<size_t>(hole - at));
      const ssize_t n = ::pread(in.get(), buffer.data(), want, at);
      if (n <= 0) return fail_errno("file.copy", "cannot read " + from);
      for (ssize_t done = 0; done < n;) {
        const ssize_t w = ::pwrite(out.get(), buffer.data() + done, static_cast<size_t>(n - done), at + done);
        if (w < 0) return fail_errno("file.copy", "cannot write " + to);
        done += w;
      }
      at += n;
    }
  }
  return {};
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace firestop
