#include "workspace/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <locale.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "workspace/host_tree.h"

namespace firestop::workspace {
namespace {

constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxName = 255;
constexpr size_t kMaxDepth = 300;
constexpr size_t kBlock = 4096;

std::string printable(std::string_view path) {
  std::string out;
  for (const char c : path.substr(0, 300))
    out.push_back(static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c);
  return out;
}

Unexpected bad(const std::string& path, const std::string& why) {
  return fail("import.bad_member", "member '" + printable(path) + "': " + why);
}

// Why a name cannot be one below the destination, or empty. One slash at the end is a folder's.
std::string_view why_bad_name(std::string_view path) {
  if (path.empty()) return "no name";
  if (path.front() == '/') return "an absolute name";
  if (path.size() > kMaxPath) return "a name of more than 4096 bytes";
  size_t depth = 0;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view component = path.substr(0, end);
    if (component.empty() || component == ".") return "an empty part in its name";
    if (component == "..") return "'..' in its name";
    if (component.size() > kMaxName) return "a part of more than 255 bytes in its name";
    if (++depth > kMaxDepth) return "too deep";
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return {};
}

UniqueFd open_strict(int root, const std::string& path, int flags, mode_t mode = 0) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

struct Folder {
  std::string path;
  mode_t mode;
  timespec time;
};

class Unpacker {
 public:
  Unpacker(archive* from, int root, const ImportLimits& limits)
      : archive_(from), root_(root), limits_(limits) {}
  Result<void> member(archive_entry* entry);
  Result<void> finish();
  const ImportedFiles& done() const { return done_; }

 private:
  // The folder that holds `path`; made if the archive does not name it.
  Result<UniqueFd> parent_of(const std::string& path);
  Result<void> folder(const std::string& path, mode_t mode, timespec time);
  Result<void> file(const std::string& path, archive_entry* entry, mode_t mode, timespec time);
  Result<void> content(const std::string& path, int fd, uint64_t size);
  Result<void> link(const std::string& path, const char* target, timespec time);
  Result<void> hard_link(const std::string& path, const std::string& target);

  archive* archive_;
  int root_;
  const ImportLimits& limits_;
  ImportedFiles done_;
  std::vector<Folder> folders_;
};

Result<UniqueFd> Unpacker::parent_of(const std::string& path) {
  const std::string parent = path.find('/') == std::string::npos ? "." : parent_path(path);
  UniqueFd fd = open_strict(root_, parent, O_PATH | O_DIRECTORY);
  if (fd.valid()) return fd;
  if (errno != ENOENT) return bad(path, std::string("its folder is none: ") + ::strerror(errno));
  TRY(folder(parent, 0755, {0, UTIME_NOW}));
  fd = open_strict(root_, parent, O_PATH | O_DIRECTORY);
  if (!fd.valid()) return bad(path, std::string("its folder cannot be opened: ") + ::strerror(errno));
  return fd;
}

Result<void> Unpacker::folder(const std::string& path, mode_t mode, timespec time) {
  TRY_ASSIGN(const UniqueFd parent, parent_of(path));
  // Ours alone until the end; the archive's mode comes last.
  if (::mkdirat(parent.get(), std::string(file_name(path)).c_str(), 0700) != 0)
    return bad(path, errno == EEXIST ? "stands twice in the archive" : ::strerror(errno));
  folders_.push_back({path, mode, time});
  return {};
}

Result<void> Unpacker::content(const std::string& path, int fd, uint64_t size) {
  const void* data = nullptr;
  size_t bytes = 0;
  la_int64_t offset = 0;
  int status;
  while ((status = ::archive_read_data_block(archive_, &data, &bytes, &offset)) == ARCHIVE_OK) {
    if (offset < 0 || static_cast<uint64_t>(offset) > size || bytes > size - static_cast<uint64_t>(offset))
      return bad(path, "more data than its size");
    std::string_view rest(static_cast<const char*>(data), bytes);
    // Whole blocks of zeros stay holes.
    while (!rest.empty()) {
      const std::string_view piece = rest.substr(0, kBlock - static_cast<size_t>(offset) % kBlock);
      if (piece.find_first_not_of('\0') != std::string_view::npos &&
          ::pwrite(fd, piece.data(), piece.size(), offset) != static_cast<ssize_t>(piece.size()))
        return fail_errno("import.write", "cannot write " + printable(path));
      offset += static_cast<la_int64_t>(piece.size());
      rest.remove_prefix(piece.size());
    }
  }
  if (status != ARCHIVE_EOF) {
    const char* why = ::archive_error_string(archive_);
    return bad(path, why ? why : "its data is broken");
  }
  return {};
}

Result<void> Unpacker::file(const std::string& path, archive_entry* entry, mode_t mode, timespec time) {
  if (!::archive_entry_size_is_set(entry) || ::archive_entry_size(entry) < 0) return bad(path, "no size");
  const auto size = static_cast<uint64_t>(::archive_entry_size(entry));
  if (size > limits_.max_bytes - done_.bytes)
    return fail(
        "import.too_large",
        "member '" + printable(path) + "': the files have more than " + format_bytes(limits_.max_bytes),
        "raise limits.result");
  done_.bytes += size;
  TRY_ASSIGN(const UniqueFd parent, parent_of(path));
  const UniqueFd fd =
      open_strict(parent.get(), std::string(file_name(path)), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!fd.valid()) return bad(path, errno == EEXIST ? "stands twice in the archive" : ::strerror(errno));
  TRY(content(path, fd.get(), size));
  const timespec times[2] = {{0, UTIME_OMIT}, time};
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 || ::fchmod(fd.get(), mode) != 0 ||
      ::futimens(fd.get(), times) != 0)
    return fail_errno("import.write", "cannot finish " + printable(path));
  return {};
}

Result<void> Unpacker::link(const std::string& path, const char* target, timespec time) {
  if (!target || !*target || ::strlen(target) >= kMaxPath)
    return bad(path, "a symbolic link without a sane target");
  // Below its own output: the first part of the path is that output's folder, and links may not leave it
  // either.
  const size_t first = path.find('/');
  if (first == std::string::npos || !link_stays_inside(path.substr(first + 1), target))
    return bad(path, "a symbolic link that leaves its folder, to " + printable(target));
  TRY_ASSIGN(const UniqueFd parent, parent_of(path));
  const std::string name(file_name(path));
  if (::symlinkat(target, parent.get(), name.c_str()) != 0)
    return bad(path, errno == EEXIST ? "stands twice in the archive" : ::strerror(errno));
  const timespec times[2] = {{0, UTIME_OMIT}, time};
  (void)::utimensat(parent.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW);
  return {};
}

Result<void> Unpacker::hard_link(const std::string& path, const std::string& target) {
  if (const auto why = why_bad_name(target); !why.empty() || target.back() == '/')
    return bad(path, "a hard link to '" + printable(target) + "'");
  const UniqueFd there = open_strict(root_, target, O_PATH);
  struct stat status{};
  if (!there.valid() || ::fstat(there.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return bad(path, "a hard link to what is no file of the archive");
  TRY_ASSIGN(const UniqueFd from, parent_of(target));
  TRY_ASSIGN(const UniqueFd to, parent_of(path));
  if (::linkat(from.get(), std::string(file_name(target)).c_str(), to.get(),
               std::string(file_name(path)).c_str(), 0) != 0)
    return bad(path, errno == EEXIST ? "stands twice in the archive" : ::strerror(errno));
  return {};
}

Result<void> Unpacker::member(archive_entry* entry) {
  const char* name = ::archive_entry_pathname(entry);
  if (!name) return fail("import.bad_member", "a member whose name cannot be read");
  std::string path = name;
  if (const auto why = why_bad_name(path); !why.empty()) return bad(path, std::string(why));
  if (++done_.files > limits_.max_files)
    return fail(
        "import.too_large",
        "member '" + printable(path) + "': more than " + std::to_string(limits_.max_files) + " members",
        "raise limits.result_files");
  const bool slash = path.back() == '/';
  if (slash) path.pop_back();
  const timespec time = {::archive_entry_mtime(entry),
                         std::clamp<long>(::archive_entry_mtime_nsec(entry), 0, 999999999)};
  mode_t mode = ::archive_entry_perm(entry);
  const char* target = ::archive_entry_hardlink(entry);
  if (target != nullptr) return hard_link(path, target);
  if (mode & (S_ISUID | S_ISGID)) return bad(path, "a setuid or setgid bit");
  if (limits_.modes == ImportLimits::Modes::kOpenToUs)
    mode |= ::archive_entry_filetype(entry) == AE_IFDIR ? S_IRWXU : S_IRUSR | S_IWUSR;
  switch (::archive_entry_filetype(entry)) {
    case AE_IFDIR:
      return folder(path, mode & 0777, time);
    case AE_IFREG:
      if (slash) return bad(path, "a file with the name of a folder");
      return file(path, entry, mode & 0777, time);
    case AE_IFLNK:
      return link(path, ::archive_entry_symlink(entry), time);
    default:
      return bad(path, "neither file, folder nor symbolic link");
  }
}

Result<void> Unpacker::finish() {
  // The deepest first: what is done to a folder would change the times of the one that holds it.
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    const UniqueFd fd = open_strict(root_, folder->path, O_RDONLY | O_DIRECTORY);
    const timespec times[2] = {{0, UTIME_OMIT}, folder->time};
    if (!fd.valid() || ::futimens(fd.get(), times) != 0 || ::fchmod(fd.get(), folder->mode) != 0)
      return fail_errno("import.write", "cannot finish " + printable(folder->path));
  }
  return {};
}

}  // namespace

Result<ImportedFiles> unpack_archive(int archive_fd, int root, const ImportLimits& limits) {
  // libarchive converts names by the locale; bytes that are no UTF-8 come as they are.
  const locale_t utf8 = ::newlocale(LC_ALL_MASK, "C.UTF-8", static_cast<locale_t>(nullptr));
  const locale_t before = utf8 ? ::uselocale(utf8) : static_cast<locale_t>(nullptr);
  Result<ImportedFiles> result = [&]() -> Result<ImportedFiles> {
    const std::unique_ptr<archive, decltype(&::archive_read_free)> reader(::archive_read_new(),
                                                                          ::archive_read_free);
    if (!reader || ::archive_read_support_format_tar(reader.get()) != ARCHIVE_OK ||
        ::archive_read_open_fd(reader.get(), archive_fd, 65536) != ARCHIVE_OK)
      return fail("import.bad_archive", "no tar archive");
    Unpacker unpacker(reader.get(), root, limits);
    while (true) {
      archive_entry* entry = nullptr;
      const int status = ::archive_read_next_header(reader.get(), &entry);
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
        const char* why = ::archive_error_string(reader.get());
        return fail("import.bad_archive", std::string("after ") + std::to_string(unpacker.done().files) +
                                              " members: " + (why ? why : "broken"));
      }
      TRY(unpacker.member(entry));
    }
    TRY(unpacker.finish());
    return unpacker.done();
  }();
  if (utf8) {
    ::uselocale(before);
    ::freelocale(utf8);
  }
  return result;
}

}  // namespace firestop::workspace
