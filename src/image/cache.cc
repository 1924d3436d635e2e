#include "image/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/file.h"
#include "image/bootstrap.h"

namespace firestop::image {

namespace {

constexpr const char* kInfo = "/info";
constexpr const char* kBuilding = ".building-";
constexpr const char* kLock = ".lock-";

Info parse_info(const std::string& text) {
  Info info;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    if (const size_t space = line.find(' '); space != std::string::npos) {
      info[line.substr(0, space)] = line.substr(space + 1);
    }
    from = end + 1;
  }
  return info;
}

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// So that after a crash of the machine a finished part is whole.
void sync_file_system(const std::string& folder) {
  if (const auto fd = open_file(folder, O_RDONLY | O_DIRECTORY)) syncfs(fd->get());
}

}  // namespace

uint64_t disk_usage(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code ignored;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    struct stat info = {};
    if (lstat(at->path().c_str(), &info) == 0) bytes += static_cast<uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

std::string Cache::building(const std::string& part_name) const {
  return folder_ + "/" + kBuilding + part_name;
}

Result<Part> Cache::find(const std::string& part_name) const {
  Part part{.folder = folder_ + "/" + part_name, .info = {}};
  const auto text = read_file(part.folder + kInfo, 64 << 10);
  if (!text) return fail("image.not_built", "'" + part.folder + "' is not built yet");
  part.info = parse_info(*text);
  return part;
}

Result<UniqueFd> Cache::try_lock(const std::string& part_name) const {
  TRY_ASSIGN(UniqueFd fd, open_file(folder_ + "/" + kLock + part_name, O_RDWR | O_CREAT));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return fail_errno("image.locked", "'" + part_name + "' is being built");
  return fd;
}

Result<UniqueFd> Cache::lock(const std::string& part_name, const std::function<void()>& waiting) const {
  auto fd = try_lock(part_name);
  if (fd || fd.error().code != "image.locked") return fd;
  waiting();
  fd = open_file(folder_ + "/" + kLock + part_name, O_RDWR | O_CREAT);
  if (!fd) return fd;
  while (flock(fd->get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail_errno("image.lock", "waiting for another build of '" + part_name + "'");
  }
  return fd;
}

Result<Part> Cache::ensure(const std::string& part_name, const Builder& builder,
                           const std::function<void()>& waiting) const {
  if (auto part = find(part_name)) return part;
  TRY(make_directories(folder_));
  TRY_ASSIGN(const UniqueFd held, lock(part_name, waiting));
  if (auto part = find(part_name)) return part;

  const std::string work = building(part_name), done = folder_ + "/" + part_name;
  remove_leftovers(work);
  TRY(remove_tree(work));
  TRY(remove_tree(done));  // a folder without its facts
  TRY(make_directories(work));
  const auto built = builder(work);
  if (!built) {
    (void)remove_tree(work);
    return Unexpected(built.error());
  }
  std::string text = "created " + std::to_string(time(nullptr)) + "\n";
  for (const auto& [key, value] : *built) text += key + " " + value + "\n";
  TRY(write_file_atomic(work + kInfo, text));
  sync_file_system(work);
  if (rename(work.c_str(), done.c_str()) != 0)
    return fail_errno("image.build_failed", "renaming to '" + done + "'");
  return find(part_name);
}

std::vector<std::string> Cache::names() const {
  std::vector<std::string> names = entries_of(folder_);
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  return names;
}

Result<uint64_t> Cache::prune(const std::vector<std::string>& keep) const {
  uint64_t freed = 0;
  for (const std::string& entry : entries_of(folder_)) {
    const bool left = entry.starts_with(kBuilding);
    const std::string part_name = left ? entry.substr(std::string_view(kBuilding).size()) : entry;
    if (part_name.starts_with('.')) continue;
    if (!left && std::find(keep.begin(), keep.end(), part_name) != keep.end()) continue;
    const auto held = try_lock(part_name);
    if (!held) continue;
    const std::string path = folder_ + "/" + entry;
    const uint64_t bytes = disk_usage(path);
    if (left) {
      remove_leftovers(path);
    } else {
      (void)std::remove((path + kInfo).c_str());  // first, so that nobody takes a part that is half gone
    }
    TRY(remove_tree(path));
    freed += bytes;
  }
  return freed;
}

}  // namespace firestop::image
