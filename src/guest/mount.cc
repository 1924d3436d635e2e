#include "guest/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "base/fd.h"
#include "base/file.h"

namespace firestop::guest {
namespace {

// A path in /proc/self/mountinfo: blanks and backslashes are octal (proc(5)).
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Result<void> mount_at(const std::string& source, const std::string& target, const char* type,
                      unsigned long flags, const std::string& data) {
  if (::mount(source.c_str(), target.c_str(), type, flags, data.empty() ? nullptr : data.c_str()) != 0)
    return fail_errno("guest.mount", "cannot mount " + source + " at " + target);
  return {};
}

Result<void> remount_read_only(const std::string& target, unsigned long flags) {
  return mount_at("none", target, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | flags);
}

Result<void> make_directory(const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return fail_errno("guest.mkdir", "cannot make " + path);
  return {};
}

Result<void> write_kernel_file(const std::string& path, const std::string& value) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("guest.kernel_file", "cannot open " + path);
  if (::write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size()))
    return fail_errno("guest.kernel_file", "cannot write \"" + value + "\" to " + path);
  return {};
}

Result<std::vector<std::string>> mounts_below(const std::string& place) {
  TRY_ASSIGN(const std::string mounts, read_file("/proc/self/mountinfo", 1u << 20));
  std::vector<std::string> found;
  std::string_view rest = mounts;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    for (int field = 0; field < 4; ++field) line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
    std::string point = unescape(line.substr(0, line.find(' ')));
    if (point == place || point.starts_with(place + "/")) found.push_back(std::move(point));
  }
  return found;
}

Result<std::string> read_kernel_file(const std::string& path) {
  TRY_ASSIGN(std::string text, read_file(path, 64u << 10));
  return text.substr(0, text.find('\n'));
}

}  // namespace firestop::guest
