#include "workspace/publish_pack.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/digest.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"

namespace firestop::workspace {
namespace {

constexpr const char* kHint = "is it writable, and is there room?";
constexpr std::string_view kExtensions[] = {".pack", ".rev", ".idx"};

Result<void> copy_all(int from, int to, uint64_t max_bytes, const std::string& name) {
  std::vector<char> piece(1u << 20);
  uint64_t done = 0;
  while (true) {
    const ssize_t n = ::read(from, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("import.failed", "cannot read " + name);
    if (n == 0) return {};
    done += static_cast<uint64_t>(n);
    if (done > max_bytes) return fail("import.failed", name + " is larger than all that came");
    auto written = write_all(to, std::string_view(piece.data(), static_cast<size_t>(n)));
    if (!written) return fail("import.failed", "cannot write a pack: " + written.error().message, kHint);
  }
}

// Who may read the folder may read the pack, as git does it with core.sharedRepository; root's belong to the
// folder's owner.
bool adapt(int file, const struct stat& folder) {
  const mode_t mode = 0400 | (folder.st_mode & 0044);
  return (::geteuid() != 0 || ::fchown(file, folder.st_uid, folder.st_gid) == 0) &&
         ::fchmod(file, mode) == 0 && ::fsync(file) == 0;
}

Result<void> publish(const std::string& from_path, int target, const struct stat& folder,
                     const std::string& name, uint64_t max_bytes) {
  TRY_ASSIGN(const UniqueFd from, open_file(from_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (::fstat(from.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail("import.failed", name + " is no file");
  const std::string partial = "tmp_pack_" + random_hex(8);  // a name that `git gc` clears away
  const UniqueFd to(::openat(target, partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to.valid()) return fail_errno("import.failed", "cannot write a pack", kHint);
  auto done = copy_all(from.get(), to.get(), max_bytes, name);
  if (done && !adapt(to.get(), folder)) done = fail_errno("import.failed", "cannot finish a pack", kHint);
  // One of this name holds the same objects.
  if (done && ::renameat2(target, partial.c_str(), target, name.c_str(), RENAME_NOREPLACE) != 0 &&
      errno != EEXIST)
    done = fail_errno("import.failed", "cannot name a pack", kHint);
  ::unlinkat(target, partial.c_str(), 0);
  return done;
}

}  // namespace

Result<std::string> name_of_pack(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  if (!directory) return fail_errno("import.failed", folder);
  std::string found;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(".pack")) continue;
    const std::string_view stem = name.substr(0, name.size() - 5);
    const std::string_view hash = stem.starts_with("pack-") ? stem.substr(5) : "";
    if ((hash.size() != 40 && hash.size() != 64) ||
        hash.find_first_not_of("0123456789abcdef") != std::string_view::npos || !found.empty())
      return fail("import.failed", "git made a pack of an odd name");
    found = stem;
  }
  if (found.empty()) return fail("import.failed", "git made no pack");
  return found;
}

Result<void> publish_pack(const std::string& folder, const std::string& git_dir, uint64_t max_bytes) {
  TRY_ASSIGN(const std::string name, name_of_pack(folder));
  const std::string path = join_path(git_dir, "objects/pack");
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    return fail_errno("import.failed", "cannot make " + path, kHint);
  TRY_ASSIGN(const UniqueFd target, open_file(path, O_RDONLY | O_DIRECTORY));
  struct stat status{};
  if (::fstat(target.get(), &status) != 0) return fail_errno("import.failed", path);
  for (const auto extension : kExtensions) {
    const std::string file = name + std::string(extension);
    const std::string from = join_path(folder, file);
    if (extension == ".rev" && !exists(from)) continue;  // an older git makes none
    TRY(publish(from, target.get(), status, file, max_bytes));
  }
  ::fsync(target.get());
  return {};
}

}  // namespace firestop::workspace
