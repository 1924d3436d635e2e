#include "guest/evidence/changes.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "codec/sha256.h"
#include "guest/boot.h"
#include "guest/inside.h"

namespace firestop::guest {
namespace {

namespace observed = channel::observed;
constexpr int64_t kOnceUs = 1'000'000;
constexpr size_t kMostRecent = 4096;
constexpr char kWorkspace[] = "/workspace/";

int64_t now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

std::string inside(std::string path) {
  if (path.starts_with(std::string(kRoot) + "/")) path.erase(0, sizeof kRoot - 1);
  return path;
}

// The directory that a descriptor of the process names, while it is there.
std::string directory_of(uint32_t pid, int descriptor) {
  return place_at("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor));
}

// Where the name lies, by links that lead where they lead now. `parents` are the numbers of the directories
// that the kernel went to, in no order (none: not known). "?/name": another one is there now, so nobody can
// say.
std::string resolve(const AuditEvent& event, std::string name, int descriptor,
                    const std::vector<uint64_t>& parents) {
  std::string base;
  if (!name.starts_with('/'))
    base = descriptor == AT_FDCWD ? inside(event.cwd) : directory_of(event.pid, descriptor);
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  const size_t slash = name.rfind('/');
  const std::string last = slash == std::string::npos ? name : name.substr(slash + 1);
  if (base.empty() && !name.starts_with('/')) return "?/" + last;
  const std::string folder = slash == std::string::npos ? base : base + "/" + name.substr(0, slash);
  const auto root = Inside::open(kRoot);
  if (!root) return "?/" + last;
  const auto directory = root->open_at(folder.empty() ? "/" : folder, O_PATH | O_DIRECTORY);
  struct stat what{};
  // Gone: its words are what is left, if no ".." in them hangs on what was a link.
  if (!directory || ::fstat(directory->get(), &what) != 0)
    return (folder + "/").find("/../") == std::string::npos ? folder + "/" + last : "?/" + last;
  if (!parents.empty() && std::find(parents.begin(), parents.end(), what.st_ino) == parents.end())
    return "?/" + last;
  const std::string place = place_of(directory->get());
  return place.empty() ? "?/" + last : (place == "/" ? "" : place) + "/" + last;
}

}  // namespace

std::string Changes::made_by(const AuditEvent& event) {
  const int directory = event.number == SYS_mknodat ? static_cast<int>(event.arguments[0]) : AT_FDCWD;
  for (const AuditPath& path : event.paths)
    if (path.kind == "CREATE") return std::string(kRoot) + resolve(event, path.name, directory, {});
  return "";
}

void Changes::remember(const std::string& path) {
  if (!path.starts_with(kWorkspace)) return;
  if (touched_.size() < kMostPaths)
    touched_.insert(path);
  else if (!touched_.contains(path))
    ++lost_;
}

// What was written in it goes along.
void Changes::directory_moved(const std::string& from, const std::string& to) {
  std::vector<std::string> moved;
  const std::string below = from + "/";
  for (auto at = touched_.lower_bound(below); at != touched_.end() && at->starts_with(below);) {
    moved.push_back(to + at->substr(from.size()));
    at = touched_.erase(at);
  }
  for (const std::string& path : moved) remember(path);
}

void Changes::written(const FileEvent& event) {
  if (!processes_.knows(event.pid)) return;
  const std::string path = place_of(event.fd);
  if (path.empty()) {  // too long for a path
    ++lost_;
    return;
  }
  remember(path);
  const int64_t now = now_us();
  auto& last = recent_[{event.pid, path}];
  if (last != 0 && now - last < kOnceUs) return;
  last = now;
  if (recent_.size() > kMostRecent) recent_.clear();
  teller_.say(observed::Change{event.pid, now, "write", path, ""});
}

void Changes::changed(const AuditEvent& event) {
  if (!processes_.knows(event.pid)) return;
  int from = AT_FDCWD, to = AT_FDCWD;
  const bool links = event.number == SYS_link || event.number == SYS_linkat;
  const bool renames =
      event.number == SYS_rename || event.number == SYS_renameat || event.number == SYS_renameat2;
  if (event.number == SYS_renameat || event.number == SYS_renameat2 || event.number == SYS_unlinkat ||
      event.number == SYS_linkat)
    from = static_cast<int>(event.arguments[0]);
  if (event.number == SYS_renameat || event.number == SYS_renameat2 || event.number == SYS_linkat)
    to = static_cast<int>(event.arguments[2]);
  const std::string_view kind = links ? "NORMAL" : "DELETE";
  std::optional<std::string> old;
  std::string made;
  bool directory = false;
  std::vector<uint64_t> parents;
  // An overlay does the same once more below, between the outer removal and the outer creation.
  for (const AuditPath& path : event.paths) {
    if (path.kind == "PARENT") parents.push_back(path.inode);
    if (path.kind == kind && !old) old = path.name;
    if (path.kind != "CREATE" || !(renames || links)) continue;
    made = path.name;
    directory = S_ISDIR(path.mode);
  }
  if (!old || (links && made.empty())) return;
  observed::Change change;
  change.pid = event.pid;
  change.at_us = event.at_ms * 1000;
  change.path = resolve(event, *old, from, links ? std::vector<uint64_t>() : parents);
  change.what = links ? "link" : made.empty() ? "delete" : "rename";
  if (!made.empty()) {
    change.to = resolve(event, made, to, parents);
    directory ? directory_moved(change.path, change.to) : remember(change.to);
  }
  teller_.say(change);
}

void Changes::tell_finals() {
  const auto root = Inside::open(kRoot);
  if (!root) return;
  uint64_t left = kMostHashed;
  for (const std::string& path : touched_) {
    const auto file = root->open_at(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat what{};
    if (!file || ::fstat(file->get(), &what) != 0 || !S_ISREG(what.st_mode)) continue;
    observed::Final final;
    final.path = path;
    final.size = static_cast<uint64_t>(what.st_size);
    if (final.size > left) {
      final.note = "not read: too much was written to read all of it again";
    } else {
      codec::PlainSha256 hash;
      char piece[64 << 10];
      ssize_t got = 0;
      while ((got = ::read(file->get(), piece, sizeof piece)) > 0) {
        const auto bytes = static_cast<size_t>(got);
        left -= std::min<uint64_t>(left, bytes);
        hash.update({piece, bytes});
      }
      if (got < 0)
        final.note = "cannot be read";
      else
        final.digest = hash.hex();
    }
    teller_.say(final);
    teller_.settle();
  }
}

uint64_t Changes::take_lost() {
  const uint64_t lost = lost_;
  lost_ = 0;
  return lost;
}

}  // namespace firestop::guest
