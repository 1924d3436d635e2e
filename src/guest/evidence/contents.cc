#include "guest/evidence/contents.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "codec/sha256.h"

namespace firestop::guest {
namespace {

constexpr int64_t kTickNs = 20'000'000;  // change times advance every 4 or 10 ms

int64_t in_ns(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return in_ns(now);
}

}  // namespace

Captured Contents::of_file(int fd, const struct stat& what) {
  const Inode inode{what.st_dev, what.st_ino};
  const auto size = static_cast<uint64_t>(what.st_size);
  const int64_t changed = in_ns(what.st_ctim);
  if (const auto found = files_.find(inode);
      found != files_.end() && found->second.changed_ns == changed && found->second.size == size)
    return found->second.captured;

  std::string bytes;
  Captured captured;
  const int64_t began = now_ns();
  char piece[64 << 10];
  while (bytes.size() < channel::observed::kMostContent) {
    const size_t want = std::min<size_t>(sizeof piece, channel::observed::kMostContent - bytes.size());
    const ssize_t got = ::pread(fd, piece, want, static_cast<off_t>(bytes.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      captured.note = std::string("cannot be read: ") + ::strerror(errno);
      break;
    }
    if (got == 0) break;
    bytes.append(piece, static_cast<size_t>(got));
  }
  if (captured.note.empty() || !bytes.empty()) {
    captured.content = tell(bytes, size);
    if (size > bytes.size()) captured.note = "cut after " + std::to_string(bytes.size()) + " bytes";
  }
  if (files_.size() >= kMostKnown) files_.clear();
  if (changed < began - kTickNs)
    files_[inode] = {changed, size, captured};
  else
    files_.erase(inode);
  return captured;
}

Captured Contents::of_bytes(std::string_view bytes) {
  Captured captured;
  captured.content = tell(bytes, bytes.size());
  if (bytes.size() > channel::observed::kMostContent)
    captured.note = "cut after " + std::to_string(channel::observed::kMostContent) + " bytes";
  return captured;
}

uint32_t Contents::tell(std::string_view bytes, uint64_t size) {
  bytes = bytes.substr(0, channel::observed::kMostContent);
  codec::PlainSha256 hash;
  hash.update(bytes);
  std::string key = hash.digest();
  key += std::to_string(size);
  if (const auto found = digests_.find(key); found != digests_.end()) return found->second;
  const uint32_t id = teller_.say_content(bytes, size);
  if (digests_.size() >= kMostKnown) digests_.clear();
  digests_.emplace(std::move(key), id);
  return id;
}

void Contents::changed(const struct stat& what) {
  files_.erase(Inode{what.st_dev, what.st_ino});
}

}  // namespace firestop::guest
