// What the jails of machines and of parsers are both prepared with. Internal to jail.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "jail/needed_files.h"
#include "jail/root_view.h"

namespace firestop::jail {

// A page that parent and child both see: which step was reached.
class SharedStep {
 public:
  SharedStep();
  ~SharedStep();
  SharedStep(const SharedStep&) = delete;
  SharedStep& operator=(const SharedStep&) = delete;
  bool valid() const;
  Step* get() const { return static_cast<Step*>(at_); }

 private:
  void* at_;
};

// "jail.unavailable": `whose` ("the machine's jail") cannot be made; what to do about it. `number`: errno or
// 0.
Unexpected jail_unavailable(const std::string& whose, const std::string& what, int number);

struct Identity {
  uint32_t uid, gid;
};
// Of the user namespace that `pid` was born into.
bool map_identity(pid_t pid, Identity inside, Identity outside);
// An ordinary user's namespace may give up no group before its map is written.
bool deny_setgroups(pid_t pid);

void add_file(std::vector<std::pair<std::string, std::string>>& list, const std::string& path);
// The folders in which all that was added lies.
void add_parents(Entry& entry);

// LD_LIBRARY_PATH=...
std::string library_path(const NeededFiles& needed);

}  // namespace firestop::jail
