#include "guest/evidence/contents.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>

namespace firestop::guest {

Result<void> Contents::choose_key() {
  if (::getrandom(key_.data(), sizeof key_, 0) != sizeof key_)
    return fail_errno("evidence.contents", "the kernel has no random bytes");
  return {};
}

Captured Contents::of_file(int fd, uint64_t size, uint64_t most) {
  most = std::min<uint64_t>(most, channel::observed::kMostContent);
  std::string bytes;
  Captured captured;
  char piece[64 << 10];
  while (bytes.size() < most) {
    const size_t want = std::min<size_t>(sizeof piece, most - bytes.size());
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
  const std::pair key(codec::siphash(key_, bytes), size);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const uint32_t id = teller_.say_content(bytes, size);
  if (known_.size() >= kMostKnown) known_.clear();
  known_.emplace(key, id);
  return id;
}

}  // namespace firestop::guest
