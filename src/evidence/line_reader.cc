#include "evidence/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace firestop::evidence {
namespace {

constexpr size_t kPiece = 64u << 10;

}  // namespace

Result<LineReader> LineReader::open(const std::string& path, size_t most_line) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return fail("evidence.not_found", "there is no " + path);
  if (!fd.valid()) return fail_errno("evidence.unreadable", "cannot open " + path);
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode))
    return fail("evidence.unreadable", path + " is no file");
  return LineReader(std::move(fd), path, most_line, static_cast<uint64_t>(st.st_size));
}

Result<void> LineReader::fill() {
  buffer_.resize(std::min<uint64_t>(kPiece, left_));
  at_ = 0;
  for (;;) {
    const ssize_t n = ::read(fd_.get(), buffer_.data(), buffer_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("evidence.unreadable", "cannot read " + path_);
    buffer_.resize(static_cast<size_t>(n));
    left_ = n == 0 ? 0 : left_ - static_cast<uint64_t>(n);
    return {};
  }
}

Result<LineReader::Got> LineReader::next() {
  line_.clear();
  bool any = false, too_long = false;
  for (;;) {
    if (at_ == buffer_.size()) {
      if (left_ > 0) TRY(fill());
      if (at_ == buffer_.size()) break;
    }
    if (!any) ++number_;
    any = true;
    const size_t newline = buffer_.find('\n', at_);
    const size_t end = std::min(newline, buffer_.size());
    too_long = too_long || line_.size() + (end - at_) > most_line_;
    if (!too_long) line_.append(buffer_, at_, end - at_);
    at_ = end;
    if (newline == std::string::npos) continue;
    ++at_;
    return too_long ? Got::kTooLong : Got::kLine;
  }
  if (!any) return Got::kEnd;
  // What a file without newlines has of a line is no more than half of one.
  return Got::kHalf;
}

}  // namespace firestop::evidence
