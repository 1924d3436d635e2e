#include "jail/child_jail.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace firestop::jail {
namespace {

bool write_own(pid_t pid, const char* name, const std::string& text) {
  const UniqueFd fd(::open(("/proc/" + std::to_string(pid) + "/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Result<void> stay_the_same(pid_t pid) {
  const auto line = [](auto id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  if (write_own(pid, "setgroups", "deny") && write_own(pid, "uid_map", line(::geteuid())) &&
      write_own(pid, "gid_map", line(::getegid())))
    return {};
  return fail_errno("jail.unavailable", "a child without network cannot be made: its user cannot be mapped");
}

}  // namespace

void without_network(Command& command) {
  command.namespaces |= CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  // Root needs no user namespace for this; in one of a single identity it could not read others'
  // repositories.
  if (::geteuid() == 0) return;
  command.namespaces |= CLONE_NEWUSER;
  command.admit = stay_the_same;
}

}  // namespace firestop::jail
