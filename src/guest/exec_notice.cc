#include "guest/exec_notice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"
#include "guest/boot.h"
#include "guest/inside.h"

namespace firestop::guest {
namespace {

constexpr size_t kMostText = 512;

std::string link_at(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  return length > 0 && static_cast<size_t>(length) < sizeof target
             ? std::string(target, static_cast<size_t>(length))
             : std::string();
}

}  // namespace

Result<UniqueFd> install_exec_notices() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 2),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install_notices(program);
}

std::string place_inside(const UniqueFd& file) {
  std::string place = link_at(path_of(file));
  if (place.empty()) return "?";
  if (place.starts_with(std::string(kRoot) + "/")) place.erase(0, sizeof kRoot - 1);
  if (place.size() > kMostText) place = "..." + place.substr(place.size() - kMostText);
  return place;
}

UniqueFd executed_file(const Notice& notice, uid_t account) {
  const std::string proc = "/proc/" + std::to_string(notice.pid());
  const auto by_link = [](const std::string& path) {
    return UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  };
  const bool at = notice.call() == SYS_execveat;
  const std::string name = notice.text_at(notice.argument(at ? 1 : 0)).value_or("");
  const int directory = at ? static_cast<int>(notice.argument(0)) : AT_FDCWD;
  if (name.empty())
    return at && directory >= 0 ? by_link(proc + "/fd/" + std::to_string(directory)) : UniqueFd();
  // Links of the kernel's own, which openat2(2) does not follow below another root.
  for (const std::string_view own : {"/proc/self/", "/proc/thread-self/"})
    if (name.starts_with(own)) return by_link(proc + "/" + name.substr(own.size()));
  if (name.starts_with("/dev/fd/")) return by_link(proc + "/fd/" + name.substr(8));
  std::string path = name;
  if (name[0] != '/') {
    const std::string base =
        link_at(directory == AT_FDCWD ? proc + "/cwd" : proc + "/fd/" + std::to_string(directory));
    if (base.empty()) return {};
    path = base + "/" + name;
  }
  const auto root = Inside::open(proc + "/root/");
  if (!root) return {};
  if (auto found = root->open_at(path, O_PATH)) return std::move(*found);
  // Root follows no links of others in /tmp (fs.protected_symlinks); their owner does.
  ::setfsuid(account);
  auto found = root->open_at(path, O_PATH);
  ::setfsuid(0);
  return found ? std::move(*found) : UniqueFd();
}

}  // namespace firestop::guest
