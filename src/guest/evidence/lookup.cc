#include "guest/evidence/lookup.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "guest/evidence/file_watch.h"
#include "guest/inside.h"

namespace firestop::guest {
namespace {

std::string proc(uint32_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

// A directory that was removed, or lies too deep, has no name, and another may have what looks like one.
bool is_directory(const Inside& root, const std::string& name, const std::string& link) {
  struct stat here{}, named{};
  const auto there = root.open_at(name, O_PATH);
  return there && ::fstat(there->get(), &named) == 0 && ::stat(link.c_str(), &here) == 0 &&
         here.st_ino == named.st_ino && here.st_dev == named.st_dev;
}

}  // namespace

UniqueFd find_inside(uint32_t pid, const std::string& word) {
  // Links of the kernel's own, which openat2(2) does not follow below another root.
  constexpr std::pair<std::string_view, std::string_view> kOwn[] = {
      {"/dev/fd/", "fd/"}, {"/proc/self/fd/", "fd/"}, {"/proc/self/", ""}};
  for (const auto& [from, to] : kOwn) {
    if (!word.starts_with(from)) continue;
    const std::string name = word.substr(from.size());
    if (name.find('/') != std::string::npos) break;
    return UniqueFd(::open((proc(pid, to) + name).c_str(), O_PATH | O_CLOEXEC));
  }
  const auto root = Inside::open(proc(pid, "root/"));
  struct stat process{};
  if (!root || ::stat(proc(pid, "").c_str(), &process) != 0) return {};
  std::string path = word;
  if (!word.starts_with('/')) {
    const std::string directory = place_at(proc(pid, "cwd"));
    if (directory.empty() || !is_directory(*root, directory, proc(pid, "cwd"))) return {};
    path = directory + "/" + word;
  }
  // Root follows no links of others in /tmp (fs.protected_symlinks); their owner does.
  ::setfsuid(process.st_uid);
  auto found = root->open_at(path, O_PATH);
  ::setfsuid(0);
  return found ? std::move(*found) : UniqueFd();
}

}  // namespace firestop::guest
