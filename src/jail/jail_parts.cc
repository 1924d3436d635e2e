#include "jail/jail_parts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"

namespace firestop::jail {
namespace {

std::string hint() {
  for (const auto& [file, refusing, setting] :
       {std::tuple{"/proc/sys/kernel/unprivileged_userns_clone", '0', "kernel.unprivileged_userns_clone=1"},
        std::tuple{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1',
                   "kernel.apparmor_restrict_unprivileged_userns=0"},
        std::tuple{"/proc/sys/user/max_user_namespaces", '0', "user.max_user_namespaces=10000"}})
    if (const auto value = read_file(file, 64); value && value->starts_with(refusing))
      return std::string("this host refuses user namespaces: sudo sysctl -w ") + setting;
  return "firestop doctor says what this host lacks; in a container, it must be allowed to make user "
         "namespaces";
}

bool write_map(pid_t pid, const char* name, const std::string& text) {
  const UniqueFd fd(::open(("/proc/" + std::to_string(pid) + "/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

SharedStep::SharedStep()
    : at_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}

SharedStep::~SharedStep() {
  if (valid()) ::munmap(at_, 4096);
}

bool SharedStep::valid() const {
  return at_ != MAP_FAILED;
}

const char* to_string(Step step) {
  switch (step) {
    case Step::kIdentity:
      return "taking its identity";
    case Step::kPrivate:
      return "making mounts private";
    case Step::kRoot:
      return "an empty root";
    case Step::kFiles:
      return "copying files";
    case Step::kPrograms:
      return "binding programs and libraries";
    case Step::kDevices:
      return "binding devices";
    case Step::kReadOnly:
      return "making it read-only";
    case Step::kMemory:
      return "what it may write";
    case Step::kPivot:
      return "changing the root";
    case Step::kNamespaces:
      return "the last namespaces";
    case Step::kLimits:
      return "limits";
    case Step::kCapabilities:
      return "dropping capabilities";
    case Step::kFilter:
      return "the system call filter";
    case Step::kDone:
      return "starting the program";
  }
  return "?";
}

Unexpected jail_unavailable(const std::string& whose, const std::string& what, int number) {
  Error error{"jail.unavailable", whose + " cannot be made: " + what, hint(), number};
  if (number != 0) error.message += std::string(": ") + ::strerror(number);
  return Unexpected(std::move(error));
}

bool map_identity(pid_t pid, Identity inside, Identity outside) {
  const auto line = [](uint32_t in, uint32_t out) {
    return std::to_string(in) + " " + std::to_string(out) + " 1";
  };
  return write_map(pid, "uid_map", line(inside.uid, outside.uid)) &&
         write_map(pid, "gid_map", line(inside.gid, outside.gid));
}

bool deny_setgroups(pid_t pid) {
  return write_map(pid, "setgroups", "deny");
}

void add_file(std::vector<std::pair<std::string, std::string>>& list, const std::string& path) {
  const std::string target = kNewRoot + path;
  if (std::none_of(list.begin(), list.end(), [&](const auto& pair) { return pair.second == target; }))
    list.emplace_back(path, target);
}

void add_parents(Entry& entry) {
  std::set<std::string> all;
  const auto add = [&](std::string at) {
    for (; at.size() > std::string_view(kNewRoot).size(); at = parent_path(at)) all.insert(at);
  };
  for (const auto* list : {&entry.programs, &entry.devices})
    for (const auto& pair : *list) add(parent_path(pair.second));
  for (const auto& pair : entry.copies) add(parent_path(pair.second));
  for (const auto& directory : entry.bound) add(directory.target);
  if (!entry.memory_file.empty()) add(parent_path(entry.memory_file));
  entry.directories.assign(all.begin(), all.end());  // a parent sorts before what is in it
}

std::string library_path(const NeededFiles& needed) {
  std::string search;
  for (const auto& directory : needed.directories) search += (search.empty() ? "" : ":") + directory;
  return "LD_LIBRARY_PATH=" + search;
}

}  // namespace firestop::jail
