#include "guest/export_outputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/file.h"
#include "guest/export_tar.h"

namespace firestop::guest {
namespace {

constexpr int kMaxDepth = 256;  // each level holds a descriptor
constexpr size_t kMaxPath = 4096;
constexpr uint32_t kMaxMembers = 2'000'000;
constexpr size_t kMaxNotes = 20;

UniqueFd open_strict(int directory, const char* name, int flags, uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  how.resolve = resolve | RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, directory, name, &how, sizeof how)));
}

// Whether a link at `path` below the output leaves it, as the text goes. The host decides; this only keeps
// one stray link from costing the whole archive.
bool link_leaves(std::string_view path, std::string_view target) {
  if (target.empty() || target.front() == '/') return true;
  long depth = std::count(path.begin(), path.end(), '/');
  while (!target.empty()) {
    const size_t end = std::min(target.find('/'), target.size());
    const std::string_view component = target.substr(0, end);
    if (component == "..") {
      if (--depth < 0) return true;
    } else if (!component.empty() && component != ".") {
      ++depth;
    }
    target.remove_prefix(std::min(end + 1, target.size()));
  }
  return false;
}

std::string said(const char* what) {
  return std::string(what) + ": " + ::strerror(errno);
}

// One pass over one output: counts, or counts and writes. An error of the output is in `fault`.
struct Pass {
  const channel::OutputDirectory& output;
  TarWriter* tar;  // null: only count
  std::vector<std::string>& notes;
  uint64_t bytes = 0;
  uint32_t members = 0;
  std::string fault;

  Result<void> directory(int fd, const std::string& below, const struct stat& status, int depth);
  Result<void> entry(int parent, const char* name, const std::string& below, int depth);
  Result<void> file(int fd, const TarMember& member);
  Result<void> emit(const TarMember& member);
  void note(const std::string& below, const char* why) {
    if (tar == nullptr && notes.size() < kMaxNotes) notes.push_back(output.path + "/" + below + ": " + why);
  }
  TarMember member(TarMember::Type type, const std::string& below, const struct stat& status) const {
    TarMember made;
    made.type = type;
    made.path = below.empty() ? output.path : output.path + "/" + below;
    made.mode = status.st_mode & 0777;
    made.mtime = status.st_mtim.tv_sec;
    made.mtime_nsec = static_cast<uint32_t>(status.st_mtim.tv_nsec);
    return made;
  }
};

Result<void> Pass::emit(const TarMember& made) {
  bytes += made.size;
  if (++members > kMaxMembers) fault = "too many files";
  if (bytes > output.max_bytes) fault = "more than its " + std::to_string(output.max_bytes) + " bytes";
  if (!fault.empty() || tar == nullptr) return {};
  return tar->begin(made);
}

Result<void> Pass::file(int fd, const TarMember& made) {
  TRY(emit(made));
  if (!fault.empty() || tar == nullptr) return {};
  char buffer[32768];
  uint64_t left = made.size;
  while (left > 0) {
    const ssize_t n = ::read(fd, buffer, static_cast<size_t>(std::min<uint64_t>(left, sizeof buffer)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      fault = made.path + ": " + (n < 0 ? said("cannot be read") : "became shorter");
      break;
    }
    TRY(tar->data(std::string_view(buffer, static_cast<size_t>(n))));
    left -= static_cast<uint64_t>(n);
  }
  return tar->pad_member();
}

Result<void> Pass::entry(int parent, const char* name, const std::string& below, int depth) {
  struct stat status{};
  if (::fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    fault = output.path + "/" + below + ": " + said("cannot be read");
    return {};
  }
  if (below.size() + output.path.size() > kMaxPath || depth > kMaxDepth) {
    fault = "folders nested too deeply";
    return {};
  }
  if (S_ISLNK(status.st_mode)) {
    TarMember made = member(TarMember::Type::kLink, below, status);
    char target[kMaxPath];
    const ssize_t n = ::readlinkat(parent, name, target, sizeof target);
    made.target.assign(target, n > 0 ? static_cast<size_t>(n) : 0);
    if (link_leaves(below, made.target)) {
      note(below, "a symbolic link that leaves its output");
      return {};
    }
    return emit(made);
  }
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    note(below, "neither file, folder nor link");
    return {};
  }
  const UniqueFd fd =
      open_strict(parent, name, S_ISDIR(status.st_mode) ? O_RDONLY | O_DIRECTORY : O_RDONLY, RESOLVE_NO_XDEV);
  if (!fd.valid() && errno == EXDEV) {
    note(below, "a mount of its own");
    return {};
  }
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    fault = output.path + "/" + below + ": " + said("cannot be opened");
    return {};
  }
  if (S_ISDIR(status.st_mode)) return directory(fd.get(), below, status, depth + 1);
  TarMember made = member(TarMember::Type::kFile, below, status);
  made.size = static_cast<uint64_t>(status.st_size);
  return file(fd.get(), made);
}

Result<void> Pass::directory(int fd, const std::string& below, const struct stat& status, int depth) {
  TRY(emit(member(TarMember::Type::kDirectory, below, status)));
  UniqueFd copy(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* stream = copy.valid() ? ::fdopendir(copy.get()) : nullptr;
  if (stream == nullptr) {
    fault = output.path + "/" + below + ": " + said("cannot be opened");
    return {};
  }
  copy.release();
  Result<void> went;
  while (went && fault.empty()) {
    const dirent* entry_of = ::readdir(stream);
    if (entry_of == nullptr) break;
    const std::string name = entry_of->d_name;
    if (name == "." || name == "..") continue;
    went = entry(fd, name.c_str(), below.empty() ? name : below + "/" + name, depth);
  }
  ::closedir(stream);
  return went;
}

}  // namespace

Result<OutputsOutcome> export_outputs(const std::string& workspace,
                                      const std::vector<channel::OutputDirectory>& outputs,
                                      const std::function<Result<void>(std::string_view)>& sink) {
  OutputsOutcome outcome;
  const auto complain = [&](const std::string& path, const std::string& why) {
    outcome.error += (outcome.error.empty() ? "" : "; ") + path + ": " + why;
  };
  TarWriter tar(sink);
  const UniqueFd root(::open(workspace.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const auto& output : outputs) {
    const UniqueFd fd = open_strict(root.get(), output.path.c_str(), O_RDONLY | O_DIRECTORY, 0);
    struct stat status{};
    if (!fd.valid() && errno == ENOENT) continue;
    if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
      complain(output.path, said("is not the folder that it was"));
      continue;
    }
    // Nothing changes between the passes: every process is gone.
    Pass count{output, nullptr, outcome.notes};
    TRY(count.directory(fd.get(), "", status, 0));
    if (!count.fault.empty()) {
      complain(output.path, count.fault);
      continue;
    }
    Pass write{output, &tar, outcome.notes};
    TRY(write.directory(fd.get(), "", status, 0));
    if (!write.fault.empty()) complain(output.path, write.fault);
    outcome.members += write.members;
  }
  TRY(tar.finish());
  return outcome;
}

}  // namespace firestop::guest
