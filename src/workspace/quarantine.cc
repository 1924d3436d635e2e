#include "workspace/quarantine.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"

namespace firestop::workspace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFolders = 64;
constexpr int kMostDepth = 5;  // as git's own
constexpr uint64_t kMostAlternates = 1u << 20;

Result<std::string> real_path(const std::string& path) {
  char real[PATH_MAX];
  if (!::realpath(path.c_str(), real)) return fail_errno("import.failed", path);
  return std::string(real);
}

// objects/info/alternates of gitrepository-layout(5). Git puts a path with odd characters in quotes; such a
// one is left out, and its objects are then said to be missing.
Result<void> add_alternates(const std::string& objects, int depth, std::vector<std::string>& out) {
  const std::string list = join_path(objects, "info/alternates");
  if (depth >= kMostDepth || !exists(list)) return {};
  TRY_ASSIGN(const std::string text, read_file(list, kMostAlternates));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line.front() == '#' || line.front() == '"') continue;
    const fs::path path = line.front() == '/' ? fs::path(line) : fs::path(objects) / line;
    std::string folder = path.lexically_normal().string();
    if (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    std::error_code error;
    if (!fs::is_directory(folder, error) || std::find(out.begin(), out.end(), folder) != out.end()) continue;
    if (out.size() >= kMostFolders) return fail("import.failed", objects + ": too many alternates");
    out.push_back(folder);
    TRY(add_alternates(folder, depth + 1, out));
  }
  return {};
}

// Root makes the files, and its children, who are somebody else, work on them.
Result<void> hand_over(const std::string& folder, jail::Identity owner) {
  if (::geteuid() != 0 || owner.uid == 0) return {};
  std::error_code error;
  bool ok = ::lchown(folder.c_str(), owner.uid, owner.gid) == 0;
  for (auto at = fs::recursive_directory_iterator(folder, error); !error && at != fs::end(at);
       at.increment(error))
    ok = ok && ::lchown(at->path().c_str(), owner.uid, owner.gid) == 0;
  if (!ok || error) return fail("import.failed", folder + ": cannot be given to the repository's owner");
  return {};
}

}  // namespace

Result<std::vector<std::string>> object_folders(const std::string& git_dir) {
  TRY_ASSIGN(const std::string objects, real_path(join_path(git_dir, "objects")));
  std::vector<std::string> out{objects};
  TRY(add_alternates(objects, 0, out));
  return out;
}

Result<Quarantine> Quarantine::make(const RepoSource& source, const std::string& scratch_directory) {
  TRY(make_directories(scratch_directory));
  TRY_ASSIGN(const std::string scratch, real_path(scratch_directory));
  TRY_ASSIGN(TemporaryDirectory folder,
             TemporaryDirectory::make_at(join_path(scratch, "quarantine-" + random_hex(8))));
  TRY_ASSIGN(const auto objects, object_folders(source.git_dir));
  struct stat status{};
  if (::stat(objects.front().c_str(), &status) != 0) return fail_errno("import.failed", objects.front());
  const jail::Identity owner{status.st_uid, status.st_gid};
  const std::string git_dir = join_path(folder.path(), "objects.git");
  const std::string packed = join_path(git_dir, "packed");
  TRY(git_checked(
      "import.failed", "",
      {"init", "-q", "--bare", "--template=", "--object-format=" + source.object_format, git_dir}));
  TRY(make_directories(packed));
  TRY_ASSIGN(jail::ParserJail receiver, jail::ParserJail::prepare("git", {{git_dir, true}}, owner));
  std::vector<jail::Folder> seen{{git_dir}};
  for (const auto& path : objects) seen.push_back({path});
  Quarantine out(std::move(folder), std::move(receiver));
  out.reader_ = out.receiver_.seeing(seen);
  seen.front().writable = true;
  out.packer_ = out.receiver_.seeing(std::move(seen));
  out.git_dir_ = git_dir;
  out.packed_ = packed;
  out.objects_ = objects.front();
  out.owner_ = owner;
  TRY(hand_over(git_dir, owner));
  return out;
}

Result<void> Quarantine::join(const RepoSource& source) const {
  if (objects_.find('\n') != std::string::npos || objects_.front() == '"')
    return fail("import.failed", "the path of the repository holds a line break");
  TRY(write_file_atomic(join_path(git_dir_, "objects/info/alternates"), objects_ + "\n"));
  const std::string shallow = join_path(source.git_dir, "shallow");
  if (exists(shallow)) {
    TRY_ASSIGN(const std::string content, read_file(shallow));
    TRY(write_file_atomic(join_path(git_dir_, "shallow"), content));
  }
  return hand_over(git_dir_, owner_);
}

}  // namespace firestop::workspace
