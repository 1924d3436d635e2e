#include "guest/evidence/file_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "guest/boot.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

#ifndef FAN_MARK_EVICTABLE
constexpr unsigned FAN_MARK_EVICTABLE = 0x200;  // Linux 5.19
#endif
constexpr uint64_t kWatched = FAN_OPEN_EXEC_PERM | FAN_OPEN_PERM | FAN_CLOSE_WRITE;
constexpr char kDeleted[] = " (deleted)";

std::string descriptor(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

Result<std::string> marks_text(int group) {
  return read_file("/proc/self/fdinfo/" + std::to_string(group), 64u << 20);
}

Result<void> mark(int group, const char* path) {
  if (::fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, kWatched, AT_FDCWD, path) != 0)
    return fail_errno("evidence.files", std::string("cannot watch ") + path);
  return {};
}

}  // namespace

Result<FileWatch> FileWatch::make() {
  FileWatch watch;
  // O_NONBLOCK is for what events' descriptors open: a pipe with a name would block.
  watch.group_.reset(::fanotify_init(
      FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE | FAN_UNLIMITED_MARKS,
      O_RDONLY | O_CLOEXEC | O_LARGEFILE | O_NOATIME | O_NONBLOCK));
  if (!watch.group_.valid()) return fail_errno("evidence.files", "the kernel has no fanotify");
  return watch;
}

Result<void> FileWatch::mark_mounts() {
  TRY_ASSIGN(const auto places, mounts_below(kRoot));
  for (const std::string& place : places) {
    struct stat what{};
    if (::stat(place.c_str(), &what) != 0) return fail_errno("evidence.files", "cannot look at " + place);
    if (place == kRoot) root_ = what.st_dev;
    TRY(mark(group_.get(), place.c_str()));
    devices_.insert(what.st_dev);
  }
  if (root_ == 0) return fail("evidence.files", "there is nothing to watch");
  // Files in memory are watched one by one (memfd_guard.h), from their beginning.
  const UniqueFd memory(::memfd_create("", MFD_CLOEXEC));
  struct stat what{};
  if (!memory.valid() || ::fstat(memory.get(), &what) != 0)
    return fail_errno("evidence.files", "cannot look at files in memory");
  devices_.insert(what.st_dev);
  return {};
}

void FileWatch::end() {
  ::fanotify_mark(group_.get(), FAN_MARK_FLUSH | FAN_MARK_FILESYSTEM, 0, AT_FDCWD, nullptr);
  ::fanotify_mark(group_.get(), FAN_MARK_FLUSH, 0, AT_FDCWD, nullptr);
}

bool FileWatch::take(const std::function<void()>& before, const std::function<void(const FileEvent&)>& each) {
  alignas(fanotify_event_metadata) char buffer[4096];
  ssize_t got = ::read(group_.get(), buffer, sizeof buffer);
  if (got <= 0) return false;
  before();
  for (const auto* event = reinterpret_cast<fanotify_event_metadata*>(buffer); FAN_EVENT_OK(event, got);
       event = FAN_EVENT_NEXT(event, got)) {
    const UniqueFd file(event->fd);
    if (!file.valid()) continue;
    FileEvent out;
    out.pid = static_cast<uint32_t>(event->pid);
    out.fd = file.get();
    const bool asks = (event->mask & (FAN_OPEN_PERM | FAN_OPEN_EXEC_PERM)) != 0;
    out.kind = (event->mask & FAN_OPEN_EXEC_PERM) != 0 ? FileEvent::Kind::kExecute
               : asks                                  ? FileEvent::Kind::kOpen
                                                       : FileEvent::Kind::kWritten;
    if (::fstat(file.get(), &out.what) == 0 && S_ISREG(out.what.st_mode)) each(out);
    if (!asks) continue;
    const fanotify_response answer{file.get(), FAN_ALLOW};
    (void)!::write(group_.get(), &answer, sizeof answer);  // fails if the thread was killed meanwhile
  }
  return true;
}

bool FileWatch::from_image(int fd, const struct stat& what) const {
  if (what.st_dev != root_) return false;
  // The overlay asks the file system below, and of the two only the upper one (ext4) knows this call.
  int flags = 0;
  return ::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0 && errno == ENOTTY;
}

// The container's first process adds to the marks, so the group is asked what it watches (proc(5), fdinfo).
bool FileWatch::watches(dev_t device) {
  if (devices_.contains(device)) return true;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ms = static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
  if (device == not_watched_ && now_ms - asked_ms_ < 1000) return false;
  const auto text = marks_text(group_.get());
  if (!text) return true;  // not known: then it is not safe
  constexpr std::string_view kMark = "fanotify sdev:";
  for (size_t at = text->find(kMark); at != std::string::npos; at = text->find(kMark, at + 1)) {
    const unsigned long number = ::strtoul(text->c_str() + at + kMark.size(), nullptr, 16);
    devices_.insert(makedev(static_cast<unsigned>(number >> 20), static_cast<unsigned>(number & 0xfffff)));
  }
  if (devices_.contains(device)) return true;
  not_watched_ = device;
  asked_ms_ = now_ms;
  return false;
}

void FileWatch::ignore_opens(int fd) {
  (void)::fanotify_mark(group_.get(), FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | FAN_MARK_EVICTABLE,
                        FAN_OPEN_PERM, AT_FDCWD, descriptor(fd).c_str());
}

void FileWatch::leave_alone(const std::string& path) {
  const UniqueFd pipe(::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  struct stat what{};
  // It may be another file by now, or have been another one all the time.
  if (!pipe.valid() || ::fstat(pipe.get(), &what) != 0 || !S_ISFIFO(what.st_mode)) return;
  (void)::fanotify_mark(group_.get(), FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | FAN_MARK_IGNORED_SURV_MODIFY,
                        FAN_OPEN_PERM | FAN_CLOSE_WRITE, AT_FDCWD, descriptor(pipe.get()).c_str());
}

Result<void> watch_place(int group, const char* path) {
  return mark(group, path);
}

// Evictable: the mark shall not keep a file in memory that nobody has open any more.
Result<void> watch_file(int group, int fd) {
  if (::fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_EVICTABLE, FAN_OPEN_EXEC_PERM | FAN_OPEN_PERM, fd,
                      nullptr) != 0)
    return fail_errno("evidence.files", "cannot watch a file");
  return {};
}

// proc(5), fdinfo: "fanotify ino:INODE sdev:DEVICE ..."
size_t marks_of(int group, dev_t device) {
  const auto text = marks_text(group);
  if (!text) return SIZE_MAX;
  char field[32];
  ::snprintf(field, sizeof field, " sdev:%x ", static_cast<unsigned>(major(device) << 20 | minor(device)));
  size_t count = 0;
  for (size_t at = text->find(field); at != std::string::npos; at = text->find(field, at + 1)) ++count;
  return count;
}

namespace {

// Whether the name is the kernel's " (deleted)", or the file is really called so.
bool was_removed(const std::string& link, const std::string& name) {
  struct stat open{}, named{};
  const std::string ours = name.starts_with(std::string(kRoot) + "/") ? name : kRoot + name;
  return ::stat(link.c_str(), &open) != 0 || ::lstat(ours.c_str(), &named) != 0 ||
         named.st_ino != open.st_ino || named.st_dev != open.st_dev;
}

}  // namespace

std::string place_at(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  if (length <= 0 || static_cast<size_t>(length) >= sizeof target) return "";
  std::string place(target, static_cast<size_t>(length));
  if (place.ends_with(kDeleted) && was_removed(link, place))
    place.resize(place.size() - (sizeof kDeleted - 1));
  if (place.starts_with(std::string(kRoot) + "/")) place.erase(0, sizeof kRoot - 1);
  return place;
}

std::string place_of(int fd) {
  return place_at(descriptor(fd));
}

}  // namespace firestop::guest
