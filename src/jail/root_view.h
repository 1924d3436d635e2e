// The file system that a jailed program sees, made in the child between clone and exec. Internal to jail.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jail/vm_jail.h"

namespace firestop::jail {

// Where the new root is put together: a folder that every host has and that holds no file we bind.
inline constexpr const char* kNewRoot = "/proc";

// A folder of the host and what is mounted in it, never with programs, devices or set-uid bits of effect.
struct BoundDirectory {
  std::string source, target;  // target below kNewRoot
  bool writable = false;
  int tree = -1;  // the child's: the mount on its way
};

// Prepared before the fork, since the child may not allocate memory. Paths begin with kNewRoot.
struct Entry {
  uint32_t uid = 1000, gid = 1000;       // inside
  bool drop_groups = false;              // where the identity maps allow setgroups(2)
  std::vector<std::string> directories;  // parents first
  std::vector<std::pair<std::string, std::string>> programs, devices;  // {source, target}, bound read-only
  std::vector<std::pair<int, std::string>> copies;                     // {descriptor, target}
  std::vector<BoundDirectory> bound;                                   // one may lie in an earlier one
  std::string root_options, memory_options;                            // of tmpfs(5)
  std::string memory_directory, memory_file;
  uint64_t memory = 0, address_space = 0, file_size = 0, threads = 0;
  uint64_t processor_seconds = 0;  // 0: no limit
  int report = -1;                 // a socket: takes the descriptor of the memory file; -1: none
  std::string filter;
  std::optional<Step> broken;
  Step* reached = nullptr;  // in memory that parent and child share
};

// Command::before_exec; `context` is an Entry. On failure `reached` says at what, errno why.
int enter(void* context);

}  // namespace firestop::jail
