// What the jails' tests run in QEMU's or git's place: tries to get out, and says how far it came. Every
// attempt is a line "NAME RESULT", where RESULT is "ok" or the error's name.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

void say(const char* name, long result) {
  std::printf("%s %s\n", name, result >= 0 ? "ok" : ::strerrorname_np(errno));
  std::fflush(stdout);
}

void list(const char* path) {
  DIR* directory = ::opendir(path);
  std::printf("list:%s", path);
  while (const dirent* entry = directory ? ::readdir(directory) : nullptr)
    if (entry->d_name[0] != '.') std::printf(" %s", entry->d_name);
  std::printf("\n");
  if (directory) ::closedir(directory);
}

void reach_for_files(const char* own) {
  say("read /etc/passwd", ::open("/etc/passwd", O_RDONLY));
  say("read /proc/self/status", ::open("/proc/self/status", O_RDONLY));
  say("read /sys", ::open("/sys", O_RDONLY | O_DIRECTORY));
  say("leave upwards", ::open("/../../../../etc/passwd", O_RDONLY));
  say("write again what is open for reading", ::open("/proc/self/fd/3", O_RDWR));
  say("create /x", ::open("/x", O_WRONLY | O_CREAT, 0600));
  say("create /dev/x", ::open("/dev/x", O_WRONLY | O_CREAT, 0600));
  say("create /memory/x", ::open("/memory/x", O_WRONLY | O_CREAT, 0600));
  say("overwrite itself", ::open(own, O_WRONLY));
  say("overwrite the C library", ::open("/usr/lib/x86_64-linux-gnu/libc.so.6", O_WRONLY));
  say("mkdir", ::mkdir("/memory/d", 0700));
  say("mknod", ::mknod("/memory/n", S_IFCHR | 0600, 0x0101));
  say("unlink the memory", ::unlink("/memory/ram"));
  const int memory = ::open("/memory/ram", O_RDWR);
  say("its memory", memory);
  say("more memory", ::ftruncate(memory, off_t{1} << 40) == 0 ? ::write(memory, "x", 1) : -1);
  list("/");
  list("/dev");
}

// The folders that parser_jail_test gives.
void reach_for_folders(const std::string& root) {
  const auto open = [&](const char* name, int flags, mode_t mode = 0) {
    return ::open((root + name).c_str(), flags, mode);
  };
  say("read a file of a folder", open("/read/file", O_RDONLY));
  say("write a file of a read-only folder", open("/read/file", O_RDWR));
  say("create in a read-only folder", open("/read/new", O_WRONLY | O_CREAT, 0600));
  say("create in a writable folder", open("/write/new", O_WRONLY | O_CREAT, 0600));
  say("create in a read-only folder of a writable one", open("/write/inner/new", O_WRONLY | O_CREAT, 0600));
  say("see a folder that it was not given", open("/hidden", O_RDONLY));
  say("leave a folder", open("/read/../../../etc/passwd", O_RDONLY));
  say("make a set-uid file", open("/write/program", O_WRONLY | O_CREAT, 04755));
}

// Takes more and more, and says what stopped it.
void eat(const std::string& what, const std::string& root) {
  constexpr size_t kPiece = 1u << 16;
  static const char piece[kPiece] = {1};
  const int file = what == "eat disk" ? ::open((root + "/write/file").c_str(), O_WRONLY | O_CREAT, 0600) : -1;
  for (long count = 0;; ++count) {
    if (what == "eat memory") {
      void* more = std::malloc(kPiece);
      if (more) ::memset(more, 1, kPiece);
      if (more) continue;
    } else if (what != "eat disk" || ::write(file, piece, kPiece) > 0) {
      continue;
    }
    std::printf("%s after %ld\n", ::strerrorname_np(errno), count);
    std::fflush(stdout);
    ::_exit(0);
  }
}

void reach_for_others(pid_t victim) {
  say("kill a process of the host", ::kill(victim, 0));
  say("kill everybody", ::kill(-1, SIGKILL));
  say("ptrace", ::ptrace(PTRACE_ATTACH, 2, nullptr, nullptr));
  say("process_vm_readv", ::syscall(SYS_process_vm_readv, 2, nullptr, 0, nullptr, 0, 0));
  say("pidfd_open", ::syscall(SYS_pidfd_open, 2, 0));
  const int inet = ::socket(AF_INET, SOCK_STREAM, 0);
  say("socket inet", inet);
  if (inet >= 0) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(22);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    say("connect", ::connect(inet, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  }
  say("socket unix", ::socket(AF_UNIX, SOCK_STREAM, 0));
  say("socket netlink", ::socket(AF_NETLINK, SOCK_RAW, 0));
  say("socket packet", ::socket(AF_PACKET, SOCK_RAW, 0));
}

void reach_for_rights() {
  say("mount", ::mount("none", "/memory", "tmpfs", 0, nullptr));
  say("remount", ::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr));
  say("umount", ::umount2("/", MNT_DETACH));
  say("chroot", ::chroot("/"));
  say("setns", ::syscall(SYS_setns, 0, CLONE_NEWNS));
  say("unshare mounts", ::unshare(CLONE_NEWNS));
  say("setuid 0", ::setuid(0));
  say("sethostname", ::sethostname("x", 1));
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct all[2] = {{~0u, ~0u, 0}, {~0u, ~0u, 0}};
  say("capset", ::syscall(SYS_capset, &header, all));
  say("bpf", ::syscall(SYS_bpf, 0, nullptr, 0));
  say("init_module", ::syscall(SYS_init_module, nullptr, 0, ""));
  say("reboot", ::syscall(SYS_reboot, 0xfee1dead, 672274793, 0, nullptr));
  const rlimit more{1, RLIM_INFINITY};
  say("raise a limit", ::setrlimit(RLIMIT_NOFILE, &more));
  char* const argv[] = {const_cast<char*>("sh"), nullptr};
  say("execve /bin/sh", ::execve("/bin/sh", argv, argv));
}

void reach_for_the_kernel() {
  say("fork", [] {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    return pid;
  }());
  say("unshare user", ::unshare(CLONE_NEWUSER));
  say("io_uring", ::syscall(SYS_io_uring_setup, 1, nullptr));
  say("userfaultfd", ::syscall(SYS_userfaultfd, 0));
  say("perf_event_open", ::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0));
  say("keyctl", ::syscall(SYS_keyctl, 0, 0, 0));
  say("memfd_create", ::syscall(SYS_memfd_create, "x", 0));
  say("open_by_handle_at", ::syscall(SYS_open_by_handle_at, -1, nullptr, 0));
  say("personality", ::syscall(SYS_personality, 0x0400000));
}

void describe() {
  utsname name{};
  ::uname(&name);
  std::printf("id %d %d %u %u %s\n", ::getpid(), ::getppid(), ::getuid(), ::getgid(), name.nodename);
  std::printf("descriptors");
  for (int fd = 0; fd < 1024; ++fd)
    if (::fcntl(fd, F_GETFD) >= 0) std::printf(" %d", fd);
  std::printf("\nenvironment");
  for (char** at = environ; *at; ++at) std::printf(" %.*s", static_cast<int>(::strcspn(*at, "=")), *at);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "wait") {
    say("here", 0);
    for (;;) ::pause();
  }
  const std::string root = argc > 2 ? argv[2] : "";
  if (what.starts_with("eat")) eat(what, root);
  describe();
  if (!root.empty()) reach_for_folders(root);
  reach_for_files(argv[0]);
  reach_for_others(static_cast<pid_t>(::atoi(what.c_str())));
  reach_for_rights();
  reach_for_the_kernel();
  return 0;
}
