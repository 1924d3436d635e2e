#include "jail/root_view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace firestop::jail {
namespace {

// Everything here runs in a copy of a process that may have had threads: system calls only, no memory.

bool take_identity(const Entry& entry) {
  return (!entry.drop_groups || ::syscall(SYS_setgroups, 0, nullptr) == 0) &&
         ::syscall(SYS_setresgid, entry.gid, entry.gid, entry.gid) == 0 &&
         ::syscall(SYS_setresuid, entry.uid, entry.uid, entry.uid) == 0;
}

// While it is still who started it: the new identity need not reach them by their paths.
bool open_directories(Entry& entry) {
  for (auto& directory : entry.bound) {
    directory.tree = static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, directory.source.c_str(),
                                                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    if (!directory.writable) attributes.attr_set |= MOUNT_ATTR_RDONLY;
    if (directory.tree < 0 || ::syscall(SYS_mount_setattr, directory.tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
                                        &attributes, sizeof attributes) != 0)
      return false;
  }
  return true;
}

bool bind_directories(const Entry& entry) {
  for (const auto& directory : entry.bound)
    if (::syscall(SYS_move_mount, directory.tree, "", AT_FDCWD, directory.target.c_str(),
                  MOVE_MOUNT_F_EMPTY_PATH) != 0 ||
        ::close(directory.tree) != 0)
      return false;
  return true;
}

bool make_root(const Entry& entry) {
  if (::mount("root", kNewRoot, "tmpfs", MS_NOSUID, entry.root_options.c_str()) != 0) return false;
  for (const auto& directory : entry.directories)
    if (::mkdir(directory.c_str(), 0755) != 0) return false;
  return true;
}

int create(const char* path) {
  return ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

bool copy(int from, const char* path) {
  const int to = create(path);
  if (to < 0) return false;
  off_t at = 0;
  ssize_t n;
  while ((n = ::sendfile(to, from, &at, 1u << 30)) > 0 || (n < 0 && errno == EINTR)) {
  }
  return n == 0 && ::close(to) == 0 && ::close(from) == 0;
}

bool bind(const std::string& source, const std::string& target) {
  const int file = create(target.c_str());
  return file >= 0 && ::close(file) == 0 &&
         ::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) == 0;
}

bool make_read_only() {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, kNewRoot, AT_RECURSIVE, &attributes, sizeof attributes) == 0;
}

bool send_descriptor(int socket, int fd) {
  char byte = 'm';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  ::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

bool make_memory(const Entry& entry) {
  if (entry.memory == 0) return true;
  if (::mount("memory", entry.memory_directory.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              entry.memory_options.c_str()) != 0)
    return false;
  const int fd = create(entry.memory_file.c_str());
  return fd >= 0 && ::ftruncate(fd, static_cast<off_t>(entry.memory)) == 0 &&
         send_descriptor(entry.report, fd) && ::close(fd) == 0;
}

bool pivot() {
  return ::chdir(kNewRoot) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0 &&
         ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0;
}

bool limit(__rlimit_resource resource, uint64_t value) {
  const rlimit both{value, value};
  return ::setrlimit(resource, &both) == 0;
}

bool set_limits(const Entry& entry) {
  return limit(RLIMIT_CORE, 0) &&  // a crash must not leave a guest's memory on disk
         limit(RLIMIT_NOFILE, 256) && limit(RLIMIT_NPROC, entry.threads) && limit(RLIMIT_MSGQUEUE, 0) &&
         (entry.file_size == 0 || limit(RLIMIT_FSIZE, entry.file_size)) &&
         (entry.processor_seconds == 0 || limit(RLIMIT_CPU, entry.processor_seconds)) &&
         (entry.address_space == 0 || limit(RLIMIT_AS, entry.address_space));
}

bool drop_capabilities() {
  for (unsigned long capability = 0; capability < 64; ++capability)
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL) return false;
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &header, none) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool install(const std::string& filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size() / sizeof(sock_filter)),
                           // The kernel takes a pointer to what it only reads.
                           reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()))};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

bool all_bound(const std::vector<std::pair<std::string, std::string>>& list) {
  for (const auto& [source, target] : list)
    if (!bind(source, target)) return false;
  return true;
}

bool do_step(Entry& entry, Step step) {
  switch (step) {
    case Step::kIdentity:
      return open_directories(entry) && take_identity(entry);
    case Step::kPrivate:
      return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    case Step::kRoot:
      return make_root(entry);
    case Step::kFiles:
      for (const auto& [fd, path] : entry.copies)
        if (!copy(fd, path.c_str())) return false;
      return true;
    case Step::kPrograms:
      return all_bound(entry.programs);
    case Step::kDevices:
      return all_bound(entry.devices);
    case Step::kReadOnly:
      return make_read_only();
    case Step::kMemory:
      return bind_directories(entry) && make_memory(entry) &&
             (entry.report < 0 || ::close(entry.report) == 0);
    case Step::kPivot:
      return pivot();
    case Step::kNamespaces:
      return ::unshare(CLONE_NEWCGROUP) == 0 && ::sethostname("firestop", 8) == 0;
    case Step::kLimits:
      return set_limits(entry);
    case Step::kCapabilities:
      return drop_capabilities();
    case Step::kFilter:
      return entry.filter.empty() || install(entry.filter);
    case Step::kDone:
      break;
  }
  return true;
}

}  // namespace

int enter(void* context) {
  auto& entry = *static_cast<Entry*>(context);
  for (int number = kFirstStep; number <= kLastStep; ++number) {
    const Step step{number};
    *entry.reached = step;
    if (entry.broken == step) {
      errno = EPERM;
      return -1;
    }
    if (!do_step(entry, step)) return -1;
  }
  *entry.reached = Step::kDone;
  return 0;
}

}  // namespace firestop::jail
