#include "base/path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sys/syscall.h>

#include <cctype>
#include <cstdlib>

namespace firestop {

std::string_view why_not_relative_path(std::string_view path) {
  if (path.empty()) return "the path is empty";
  if (path.size() > 4096) return "the path is longer than 4096 bytes";
  if (path.front() == '/') return "the path is absolute";
  if (path.front() == '~') return "the path begins with '~'";
  if (path.size() >= 2 && std::isalpha(static_cast<unsigned char>(path[0])) && path[1] == ':')
    return "the path begins with a drive letter";
  for (const char c : path) {
    if (c == '\0') return "the path contains NUL";
    if (c == '\\') return "the path contains a backslash";
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "the path contains a control character";
  }
  if (path.back() == '/') return "the path ends with '/'";
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty()) return "the path has an empty component ('//')";
    if (part == ".") return "the path contains '.'";
    if (part == "..") return "the path contains '..'";
    if (part.size() > 255) return "a component of the path is longer than 255 bytes";
    at = end + 1;
  }
  return {};
}

Result<UniqueFd> open_beneath(int root_fd, const std::string& path, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how);
  if (fd < 0) return fail_errno("file.open", "cannot open " + path);
  return UniqueFd(static_cast<int>(fd));
}

std::string join_path(std::string_view directory, std::string_view name) {
  std::string out(directory);
  if (!out.empty() && out.back() != '/') out += '/';
  out += name;
  return out;
}

std::string_view file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string parent_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

#ifndef FIRESTOP_GUEST
namespace {

std::string xdg(const char* variable, const char* below_home) {
  if (const char* value = std::getenv(variable); value && value[0] == '/')
    return join_path(value, "firestop");
  const char* home = std::getenv("HOME");
  if (!home || home[0] != '/') {
    const passwd* account = ::getpwuid(::geteuid());
    home = account ? account->pw_dir : "/";
  }
  return join_path(join_path(home, below_home), "firestop");
}

}  // namespace

std::string state_directory() {
  return xdg("XDG_STATE_HOME", ".local/state");
}
std::string cache_directory() {
  return xdg("XDG_CACHE_HOME", ".cache");
}
std::string config_directory() {
  return xdg("XDG_CONFIG_HOME", ".config");
}
#endif

}  // namespace firestop
