#include "guest/memfd_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "guest/evidence/file_watch.h"
#include "guest/notice.h"

namespace firestop::guest {

Result<UniqueFd> install_memfd_notices() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install_notices(program);
}

MemfdGuard::~MemfdGuard() {
  if (listener_.valid()) events_.drop(listener_.get());
}

void MemfdGuard::listen(UniqueFd listener) {
  if (listener_.valid()) events_.drop(listener_.get());
  listener_ = std::move(listener);
  if (listener_.valid())
    events_.watch(listener_.get(), EPOLLIN, [this](uint32_t events) {
      if ((events & EPOLLIN) != 0) return answer();
      events_.drop(listener_.get());  // the container is gone
      listener_.reset();
    });
}

// A mark goes with its file, and the group tells its marks.
bool MemfdGuard::is_full(dev_t device) {
  if (files_ >= kMostFiles) files_ = marks_of(group_, device);
  if (files_ >= kMostFiles) return true;
  ++files_;
  return false;
}

void MemfdGuard::answer() {
  const auto notice = Notice::receive(listener_.get());
  if (!notice) return;  // its thread is gone
  const auto name = notice->text_at(notice->argument(0));
  if (!name) return notice->refuse(EFAULT);
  const auto flags = static_cast<unsigned>(notice->argument(1));
  if ((flags & MFD_HUGETLB) != 0)
    return notice->refuse(ENOSYS);  // of another device, and the guest has no such pages
  ::setfsgid(gid_);
  ::setfsuid(uid_);
  const UniqueFd file(::memfd_create(name->c_str(), flags | MFD_CLOEXEC));
  const int error = errno;
  ::setfsuid(0);
  ::setfsgid(0);
  if (!file.valid()) return notice->refuse(error);
  struct stat what{};
  if (::fstat(file.get(), &what) != 0 || is_full(what.st_dev)) return notice->refuse(ENFILE);
  if (const auto watched = watch_file(group_, file.get()); !watched) return notice->refuse(ENOMEM);
  notice->give(file.get(), (flags & MFD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
}

}  // namespace firestop::guest
