#include "evidence/event_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/path.h"
#include "evidence/event.h"

namespace firestop::evidence {
namespace {

constexpr size_t kPiece = 1u << 20;

}  // namespace

Result<EventLines> EventLines::open(const std::string& directory) {
  const std::string path = join_path(directory, "events.jsonl");
  // O_NONBLOCK: a fifo in its place must not hold us up.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR))
    return fail("evidence.not_found", "there is no record in " + directory);
  struct stat about{};
  if (!fd.valid() || ::fstat(fd.get(), &about) != 0) return fail_errno("evidence.unreadable", path);
  if (!S_ISREG(about.st_mode)) return fail("evidence.unreadable", path + " is not a file");
  return EventLines(std::move(fd));
}

Result<std::optional<std::string_view>> EventLines::next() {
  size_t searched = from_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      const std::string_view line(buffer_.data() + from_, end - from_);
      bytes_ += line.size() + 1;
      ++line_;
      from_ = end + 1;
      if (line.size() > kMostLine) return fail("evidence.bad_event", "longer than any event is");
      return line;
    }
    if (buffer_.size() - from_ > kMostLine) {
      ++line_;
      return fail("evidence.bad_event", "longer than any event is");
    }
    buffer_.erase(0, from_);
    from_ = 0;
    searched = buffer_.size();
    buffer_.resize(searched + kPiece);
    const ssize_t got = ::read(fd_.get(), buffer_.data() + searched, kPiece);
    buffer_.resize(searched + static_cast<size_t>(got > 0 ? got : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("evidence.unreadable", "events.jsonl");
    if (got == 0) return std::nullopt;
  }
}

}  // namespace firestop::evidence
