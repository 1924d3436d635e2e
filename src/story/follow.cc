#include "story/follow.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/path.h"
#include "evidence/event.h"

namespace firestop::story {

Result<Follower> Follower::open(const std::string& directory) {
  const std::string path = join_path(directory, "events.jsonl");
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return fail("evidence.not_found", "there is no record in " + directory);
  struct stat st{};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0)
    return fail_errno("evidence.unreadable", "cannot open " + path);
  if (!S_ISREG(st.st_mode)) return fail("evidence.unreadable", path + " is no file");
  return Follower(std::move(fd));
}

Result<std::optional<std::string_view>> Follower::next() {
  size_t searched = at_;
  for (;;) {
    if (const size_t newline = buffer_.find('\n', searched); newline != std::string::npos) {
      const std::string_view line = std::string_view(buffer_).substr(at_, newline - at_);
      at_ = newline + 1;
      ++number_;
      return line;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    if (buffer_.size() > evidence::kMostLine)
      return fail("evidence.bad_event", "line " + std::to_string(number_ + 1) + " is longer than " +
                                            std::to_string(evidence::kMostLine) + " bytes");
    searched = buffer_.size();
    char piece[65536];
    const ssize_t n = ::read(fd_.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("evidence.unreadable", "cannot read the record");
    if (n == 0) return std::nullopt;
    buffer_.append(piece, static_cast<size_t>(n));
  }
}

}  // namespace firestop::story
