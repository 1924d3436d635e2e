#include "jail/parser_filter.h"

#include <sys/prctl.h>
#include <sys/stat.h>

#include "jail/filter_rules.h"

namespace firestop::jail {
namespace {

using Names = FilterRules::Names;

constexpr const char* kReading[] = {
    "access",     "close",  "close_range", "dup",     "dup2",     "dup3",       "faccessat",
    "faccessat2", "fcntl",  "fstat",       "fstatfs", "getcwd",   "getdents",   "getdents64",
    "lseek",      "lstat",  "newfstatat",  "pipe",    "pipe2",    "poll",       "ppoll",
    "pread64",    "preadv", "pselect6",    "read",    "readlink", "readlinkat", "readv",
    "select",     "stat",   "statfs",      "statx",   "chdir",    "fadvise64",  "readahead"};
constexpr const char* kWriting[] = {
    "fdatasync", "flock",     "fsync",  "ftruncate",       "link",     "linkat",   "pwrite64", "rename",
    "renameat",  "renameat2", "rmdir",  "sync_file_range", "truncate", "umask",    "unlink",   "unlinkat",
    "utime",     "utimensat", "utimes", "write",           "writev",   "fallocate"};
constexpr const char* kMemory[] = {"brk",      "madvise", "mincore", "mmap",
                                   "mprotect", "mremap",  "msync",   "munmap"};
constexpr const char* kItself[] = {"arch_prctl",
                                   "execve",
                                   "exit",
                                   "exit_group",
                                   "futex",
                                   "get_robust_list",
                                   "getegid",
                                   "geteuid",
                                   "getgid",
                                   "getpgrp",
                                   "getpid",
                                   "getppid",
                                   "getrandom",
                                   "getrlimit",
                                   "getrusage",
                                   "gettid",
                                   "getuid",
                                   "membarrier",
                                   "rseq",
                                   "sched_getaffinity",
                                   "sched_yield",
                                   "set_robust_list",
                                   "set_tid_address",
                                   "sysinfo",
                                   "uname"};
constexpr const char* kSignalsAndTime[] = {
    "alarm",        "clock_getres", "clock_gettime",   "clock_nanosleep", "getitimer",
    "gettimeofday", "nanosleep",    "restart_syscall", "rt_sigaction",    "rt_sigprocmask",
    "rt_sigreturn", "setitimer",    "sigaltstack",     "tgkill",          "time"};
constexpr const char* kAbsent[] = {"clone3", "io_uring_setup", "memfd_create", "memfd_secret"};

constexpr uint64_t kSetId = S_ISUID | S_ISGID;

}  // namespace

Result<std::string> parser_filter() {
  TRY_ASSIGN(FilterRules rules, FilterRules::start());
  for (const Names group :
       {Names(kReading), Names(kWriting), Names(kMemory), Names(kItself), Names(kSignalsAndTime)})
    TRY(rules.allow(group));
  TRY(rules.absent(kAbsent));
  TRY(rules.allow_threads());
  TRY(rules.allow_common_ioctls());
  TRY(rules.allow("prlimit64", {SCMP_A2_64(SCMP_CMP_EQ, 0)}));
  // The last word of spawn() before it becomes the program.
  TRY(rules.allow("prctl", {SCMP_A0_64(SCMP_CMP_EQ, PR_SET_PDEATHSIG)}));
  for (const char* name : {"chmod", "fchmod", "mkdir"})
    TRY(rules.allow(name, {SCMP_A1_64(SCMP_CMP_MASKED_EQ, kSetId, 0)}));
  for (const char* name : {"fchmodat", "mkdirat", "open"})
    TRY(rules.allow(name, {SCMP_A2_64(SCMP_CMP_MASKED_EQ, kSetId, 0)}));
  TRY(rules.allow("openat", {SCMP_A3_64(SCMP_CMP_MASKED_EQ, kSetId, 0)}));
  return rules.finish();
}

}  // namespace firestop::jail
