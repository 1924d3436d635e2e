#include "guest/exec_notice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <stddef.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
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
  // Calls of other architectures never come here: the container's own filter ends the process.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 2),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  UniqueFd listener(static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter)));
  if (!listener.valid()) return fail_errno("container.seccomp", "cannot ask to be told of executions");
  return listener;
}

std::string place_inside(const UniqueFd& file) {
  std::string place = link_at(path_of(file));
  if (place.empty()) return "?";
  if (place.starts_with(std::string(kRoot) + "/")) place.erase(0, sizeof kRoot - 1);
  if (place.size() > kMostText) place = "..." + place.substr(place.size() - kMostText);
  return place;
}

std::optional<ExecNotice> ExecNotice::receive(int listener) {
  ExecNotice notice;
  notice.listener_ = listener;
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice.notice_) != 0) return std::nullopt;
  return notice;
}

std::string ExecNotice::name() const {
  const uint64_t at = notice_.data.args[notice_.data.nr == SYS_execveat ? 1 : 0];
  const UniqueFd memory(
      ::open(("/proc/" + std::to_string(notice_.pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid() || at > INT64_MAX) return "";
  char text[PATH_MAX];
  size_t got = 0;
  while (got < sizeof text) {  // page by page: the next one may not be there
    const size_t page = 4096 - (at + got) % 4096;
    const ssize_t n =
        ::pread(memory.get(), text + got, std::min(page, sizeof text - got), static_cast<off_t>(at + got));
    if (n <= 0) return "";
    if (const void* end = ::memchr(text + got, '\0', static_cast<size_t>(n)))
      return {text, static_cast<size_t>(static_cast<const char*>(end) - text)};
    got += static_cast<size_t>(n);
  }
  return "";
}

UniqueFd ExecNotice::file(uid_t account) const {
  const std::string proc = "/proc/" + std::to_string(notice_.pid);
  const auto by_link = [](const std::string& path) {
    return UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  };
  const std::string name = this->name();
  const bool at = notice_.data.nr == SYS_execveat;
  const int directory = at ? static_cast<int>(notice_.data.args[0]) : AT_FDCWD;
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

void ExecNotice::answer(int error, unsigned flags) const {
  seccomp_notif_resp response{};
  response.id = notice_.id;
  response.error = -error;
  response.flags = flags;
  ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response);  // fails when the call is there no more
}

void ExecNotice::refuse(int error) const {
  answer(error, 0);
}

void ExecNotice::go_on() const {
  answer(0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

}  // namespace firestop::guest
