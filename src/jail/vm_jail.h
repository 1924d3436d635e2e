// Starts a virtual machine monitor where there is nothing: own user, mount, process, IPC, host name, network
// and cgroup namespaces; a root that holds its own files, read-only; one identity without rights; no
// capabilities, no new privileges, a system call filter (vm_filter.h), limits. Everything that it works on
// comes as a descriptor or is one of the few files described here. No /proc: what a descriptor was opened
// for reading cannot be opened again for writing.
//
// The program is the first process of its process namespace and a child of the caller: its end ends all that
// it may have started, and it dies with the calling thread (PR_SET_PDEATHSIG).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace firestop::jail {

inline constexpr const char* kMemoryFile = "/memory/ram";

// What the jail is made of, in order; each can fail, and then nothing has been started.
enum class Step : int {
  kIdentity = 1,  // the one user and group of the namespace
  kPrivate,       // mounts that nobody else sees
  kRoot,          // an empty file system
  kFiles,         // what is copied into it
  kPrograms,      // the program, libraries, data
  kDevices,
  kReadOnly,
  kMemory,  // what it may write: the guest's memory, folders
  kPivot,   // the new root is the root, the old one gone
  kNamespaces,
  kLimits,
  kCapabilities,
  kFilter,
  kDone,
};
inline constexpr int kFirstStep = 1;
inline constexpr int kLastStep = static_cast<int>(Step::kFilter);
const char* to_string(Step step);

class Unfiltered;

struct VmJail {
  // The system call filter is left out. Include "jail/unfiltered.h" to do this.
  void allow(const Unfiltered&) { filtered = false; }

  bool filtered = true;
  std::vector<std::string> modules;  // libraries that the program loads later
  std::vector<std::string> data;     // files that it reads, at the same paths; missing ones are left out
  std::vector<std::pair<int, std::string>> copies;  // {number in the child, path}: copied, descriptor closed
  bool kvm = false;                                 // /dev/kvm is there
  uint64_t memory = 0;         // bytes of kMemoryFile, the only thing that can be written; 0: none
  uint64_t address_space = 0;  // bytes (RLIMIT_AS); 0: no limit
  uint64_t file_size = 0;      // bytes (RLIMIT_FSIZE); 0: no limit
  unsigned threads = 256;      // RLIMIT_NPROC
  // As Command::admit, for the control group.
  std::function<Result<void>(pid_t)> admit;
  // For tests: this step fails.
  std::optional<Step> broken;
};

struct Jailed {
  Child child;
  UniqueFd memory;  // kMemoryFile, when there is one
};

// Starts `command`, whose env and directory are replaced and whose program is found as spawn() does. Errors:
// "jail.unavailable" when the host refuses a part, "jail.program", "jail.seccomp", and those of spawn().
Result<Jailed> spawn_jailed(Command command, const VmJail& jail);

// Whether this host lets us make such a jail; the error of the step that fails. Starts `program --version`.
Result<void> try_jail(const std::string& program);

}  // namespace firestop::jail
