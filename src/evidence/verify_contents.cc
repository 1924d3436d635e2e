#include "evidence/verify_contents.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/digest.h"
#include "base/fd.h"
#include "base/path.h"
#include "evidence/content_store.h"

namespace firestop::evidence {
namespace {

constexpr size_t kMostChanged = 1000;

// A regular file's digest, not through links; empty for anything else.
std::string digest_of(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat st{};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
  Sha256 hash;
  std::vector<char> buffer(64u << 10);
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {};
    if (n == 0) return hash.hex();
    hash.update({buffer.data(), static_cast<size_t>(n)});
  }
}

struct Closer {
  void operator()(DIR* d) const { ::closedir(d); }
};
using Directory = std::unique_ptr<DIR, Closer>;

// Calls `take` with each name in `path` but "." and "..".
template <typename Take>
Result<void> each_name(const std::string& path, Take take) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return {};
  const Directory open(fd.valid() ? ::fdopendir(fd.get()) : nullptr);
  if (!open) return fail_errno("evidence.unreadable", "cannot list " + path);
  (void)fd.release();
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") TRY(take(name));
  }
  return {};
}

}  // namespace

Result<ContentCheck> ContentCheck::read(const std::string& directory) {
  ContentCheck out;
  out.directory_ = directory;
  const std::string root = join_path(directory, "content");
  TRY(each_name(root, [&](const std::string& shard) -> Result<void> {
    return each_name(join_path(root, shard), [&](const std::string& name) -> Result<void> {
      // Others are nobody's: no event can refer to them.
      if (content_path(directory, name) != join_path(root, shard + "/" + name)) return {};
      ++out.files_;
      if (digest_of(content_path(directory, name)) == name) return {};
      if (out.changed_.size() < kMostChanged)
        out.changed_.insert(name);
      else
        out.more_ = true;
      return {};
    });
  }));
  return out;
}

ContentCheck::State ContentCheck::of(const std::string& digest) const {
  const std::string path = content_path(directory_, digest);
  struct stat st{};
  if (path.empty() || ::lstat(path.c_str(), &st) != 0) return State::kMissing;
  const bool changed = changed_.count(digest) > 0 || (more_ && digest_of(path) != digest);
  return changed ? State::kChanged : State::kGood;
}

}  // namespace firestop::evidence
