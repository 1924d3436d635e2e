// The outputs' archive is unpacked by a child that has nothing else: no network and no view of the host
// (namespaces, chroot; without them nothing is unpacked), a short list of system calls, little memory,
// bounded time and file sizes.
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "base/process.h"
#include "workspace/unpack.h"

namespace firestop::workspace {
namespace {

constexpr int kTimeoutMs = 600'000;
[[maybe_unused]] constexpr rlim_t kMemory = 1ull << 30;
constexpr off_t kTrailer = 1024;  // an archive ends with two blocks of zeros

// What the child says at its end; a fixed size, so that nothing is to be parsed.
struct Verdict {
  int32_t ok = 0;
  uint32_t files = 0;
  uint64_t bytes = 0;
  char code[64] = {};
  char message[1024] = {};
  char hint[256] = {};
};

void copy_text(char* to, size_t size, const std::string& text) {
  const size_t n = std::min(text.size(), size - 1);
  ::memcpy(to, text.data(), n);
  to[n] = '\0';
}

bool write_small(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const auto size = static_cast<ssize_t>(::strlen(text));
  const bool ok = fd >= 0 && ::write(fd, text, static_cast<size_t>(size)) == size;
  if (fd >= 0) ::close(fd);
  return ok;
}

// The destination becomes the root and there is no network. Needs user namespaces, or root, as the machine's
// own jail does. Files stay ours: our id is mapped to itself.
bool leave_the_host(int destination) {
  if (::geteuid() == 0) {
    if (::unshare(CLONE_NEWNET | CLONE_NEWIPC) != 0) return false;
  } else {
    char uid_map[64], gid_map[64];
    ::snprintf(uid_map, sizeof uid_map, "%u %u 1", ::geteuid(), ::geteuid());
    ::snprintf(gid_map, sizeof gid_map, "%u %u 1", ::getegid(), ::getegid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) != 0) return false;
    if (!write_small("/proc/self/setgroups", "deny") || !write_small("/proc/self/uid_map", uid_map) ||
        !write_small("/proc/self/gid_map", gid_map))
      return false;
  }
  return ::fchdir(destination) == 0 && ::chroot(".") == 0;
}

// Root's, or those that a user has in a namespace of its own making.
bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

bool set_limits(const ImportLimits& limits) {
  const auto set = [](__rlimit_resource resource, rlim_t value) {
    const rlimit limit{value, value};
    return ::setrlimit(resource, &limit) == 0;
  };
#if defined(FIRESTOP_ASAN) || defined(FIRESTOP_TSAN)
  const bool memory = true;  // sanitizers reserve terabytes of address space
#else
  const bool memory = set(RLIMIT_AS, kMemory);
#endif
  return memory && set(RLIMIT_FSIZE, std::max<rlim_t>(limits.max_bytes, 1)) && set(RLIMIT_CPU, 300) &&
         set(RLIMIT_CORE, 0) && set(RLIMIT_NOFILE, 64) && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// Files below the root, memory, the pipe; everything else fails with EPERM, and so does the import.
bool filter_system_calls() {
  scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (!filter) return false;
  bool ok = true;
  for (const int call : {SCMP_SYS(read),
                         SCMP_SYS(pread64),
                         SCMP_SYS(readv),
                         SCMP_SYS(write),
                         SCMP_SYS(pwrite64),
                         SCMP_SYS(writev),
                         SCMP_SYS(lseek),
                         SCMP_SYS(close),
                         SCMP_SYS(fstat),
                         SCMP_SYS(newfstatat),
                         SCMP_SYS(openat2),
                         SCMP_SYS(mkdirat),
                         SCMP_SYS(symlinkat),
                         SCMP_SYS(linkat),
                         SCMP_SYS(fchmod),
                         SCMP_SYS(ftruncate),
                         SCMP_SYS(utimensat),
                         SCMP_SYS(mmap),
                         SCMP_SYS(munmap),
                         SCMP_SYS(mremap),
                         SCMP_SYS(mprotect),
                         SCMP_SYS(madvise),
                         SCMP_SYS(brk),
                         SCMP_SYS(futex),
                         SCMP_SYS(getrandom),
                         SCMP_SYS(clock_gettime),
                         SCMP_SYS(gettimeofday),
                         SCMP_SYS(getpid),
                         SCMP_SYS(gettid),
                         SCMP_SYS(tgkill),
                         SCMP_SYS(rt_sigaction),
                         SCMP_SYS(rt_sigprocmask),
                         SCMP_SYS(rt_sigreturn),
                         SCMP_SYS(sigaltstack),
                         SCMP_SYS(restart_syscall),
                         SCMP_SYS(sched_yield),
                         SCMP_SYS(exit),
                         SCMP_SYS(exit_group)})
    ok = ok && ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0;
  ok = ok && ::seccomp_load(filter) == 0;
  ::seccomp_release(filter);
  return ok;
}

[[noreturn]] void be_the_child(int archive, int destination, int answer, pid_t parent,
                               const ImportLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  // Writing beyond a limit is an error that is told, not a death.
  ::signal(SIGXFSZ, SIG_IGN);
  // Three descriptors and no others, at known places.
  const int from[3] = {archive, destination, answer};
  int high[3];
  for (int i = 0; i < 3; ++i) high[i] = ::fcntl(from[i], F_DUPFD, 100);
  for (int i = 0; i < 3; ++i)
    if (high[i] < 0 || ::dup2(high[i], i + 3) < 0) ::_exit(1);
  ::syscall(SYS_close_range, 6u, ~0u, 0u);
  ::close(0);
  Verdict verdict;
  // The locale's files lie on the host.
  if (const locale_t loaded = ::newlocale(LC_ALL_MASK, "C.UTF-8", static_cast<locale_t>(nullptr)))
    ::freelocale(loaded);
  Result<ImportedFiles> result = fail("import.jail", "cannot set up the jail that unpacks the outputs");
  if (leave_the_host(4) && drop_capabilities() && set_limits(limits) && filter_system_calls())
    result = unpack_archive(3, 4, limits);
  if (result) {
    verdict.ok = 1;
    verdict.files = result->files;
    verdict.bytes = result->bytes;
  } else {
    copy_text(verdict.code, sizeof verdict.code, result.error().code);
    copy_text(verdict.message, sizeof verdict.message, result.error().message);
    copy_text(verdict.hint, sizeof verdict.hint, result.error().hint);
  }
  ::_exit(::write(5, &verdict, sizeof verdict) == sizeof verdict ? 0 : 1);
}

Result<ImportedFiles> unpack_in_child(int archive, int destination, const ImportLimits& limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("import.failed", "cannot make a pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("import.failed", "cannot fork");
  if (pid == 0) be_the_child(archive, destination, ends[1], parent, limits);
  write_end.reset();
  pollfd answer{read_end.get(), POLLIN, 0};
  int n;
  while ((n = ::poll(&answer, 1, kTimeoutMs)) < 0 && errno == EINTR) {
  }
  if (n <= 0) ::kill(pid, SIGKILL);
  Verdict verdict;
  const bool told = n > 0 && ::read(read_end.get(), &verdict, sizeof verdict) == sizeof verdict;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (n == 0) return fail("import.timeout", "unpacking the outputs took longer than ten minutes");
  if (!told)
    return fail("import.failed", "the process that unpacks the outputs ended: " + describe_status(status));
  if (verdict.ok == 1) return ImportedFiles{verdict.files, verdict.bytes};
  verdict.code[sizeof verdict.code - 1] = verdict.message[sizeof verdict.message - 1] = '\0';
  verdict.hint[sizeof verdict.hint - 1] = '\0';
  return fail(verdict.code, verdict.message, verdict.hint);
}

// A stream that was cut between two members would look whole to a reader.
Result<void> check_trailer(int fd, const std::string& path) {
  struct stat status{};
  char trailer[kTrailer];
  if (::fstat(fd, &status) != 0) return fail_errno("import.failed", path);
  if (status.st_size < kTrailer ||
      ::pread(fd, trailer, sizeof trailer, status.st_size - kTrailer) !=
          static_cast<ssize_t>(sizeof trailer) ||
      std::any_of(std::begin(trailer), std::end(trailer), [](char c) { return c != 0; }))
    return fail("import.bad_archive", "the outputs' archive is cut off");
  return {};
}

}  // namespace

Result<ImportedFiles> import_archive(const std::string& tar_path, const std::string& destination,
                                     const ImportLimits& limits) {
  TRY_ASSIGN(const UniqueFd archive, open_file(tar_path, O_RDONLY));
  TRY(check_trailer(archive.get(), tar_path));
  const std::string name(file_name(destination));
  if (name.empty()) return fail("import.exists", destination + ": not a name for a new folder");
  struct stat status{};
  if (::lstat(destination.c_str(), &status) == 0)
    return fail("import.exists", destination + " exists already; nothing is overwritten",
                "choose another with --out");
  const std::string parent = parent_path(destination);
  TRY(make_directories(parent, 0777));
  const std::string partial = join_path(parent, "." + name + ".part-" + random_hex(8));
  if (::mkdir(partial.c_str(), 0700) != 0) return fail_errno("import.failed", "cannot make " + partial);
  auto unpacked = [&]() -> Result<ImportedFiles> {
    TRY_ASSIGN(const UniqueFd root, open_file(partial, O_RDONLY | O_DIRECTORY));
    TRY_ASSIGN(const ImportedFiles files, unpack_in_child(archive.get(), root.get(), limits));
    if (::fchmod(root.get(), 0755) != 0) return fail_errno("import.failed", partial);
    if (files.files == 0) return files;
    if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, destination.c_str(), RENAME_NOREPLACE) != 0)
      return fail_errno(errno == EEXIST ? "import.exists" : "import.failed", "cannot make " + destination);
    return files;
  }();
  // Nothing came, or something went wrong: nothing stays.
  if (!unpacked || unpacked->files == 0) (void)remove_tree(partial);
  return unpacked;
}

}  // namespace firestop::workspace
