#include "jail/vm_jail.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/path.h"
#include "jail/jail_parts.h"
#include "jail/needed_files.h"
#include "jail/root_view.h"
#include "jail/vm_filter.h"

namespace firestop::jail {
namespace {

constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;
// A user of root's jails is nobody else's; beside it what every host has for the purpose.
constexpr uint32_t kFirstId = 0x70000000, kNobody = 65534;

Unexpected unavailable(const std::string& what, int number) {
  return jail_unavailable("the machine's jail", what, number);
}

// The group that may use KVM, which QEMU opens by itself.
std::optional<uint32_t> kvm_group() {
  struct stat st{};
  if (::stat("/dev/kvm", &st) != 0 || st.st_gid == 0) return std::nullopt;
  return st.st_gid;
}

// An ordinary user is mapped to itself; root to an identity that owns nothing.
Result<void> give_identity(pid_t pid, const Entry& entry, bool kvm) {
  if (::geteuid() != 0) {
    if (deny_setgroups(pid) && map_identity(pid, {entry.uid, entry.gid}, {::geteuid(), ::getegid()}))
      return {};
    return unavailable("its user cannot be mapped", errno);
  }
  const auto group = kvm ? kvm_group() : std::nullopt;
  for (const uint32_t id : {kFirstId + (static_cast<uint32_t>(pid) & 0xffffffu), kNobody})
    if (map_identity(pid, {entry.uid, entry.gid}, {id, group.value_or(id)})) return {};
  return unavailable("its user cannot be mapped to one without rights", errno);
}

Result<uint64_t> size_of_copies(const Command& command, const VmJail& jail) {
  uint64_t bytes = 0;
  for (const auto& [number, path] : jail.copies)
    for (const auto& [ours, theirs] : command.descriptors) {
      struct stat st{};
      if (theirs != number) continue;
      if (::fstat(ours, &st) != 0) return fail_errno("jail.unavailable", "cannot look at " + path);
      bytes += (static_cast<uint64_t>(st.st_size) + 4095) & ~uint64_t{4095};
    }
  return bytes;
}

Result<Entry> prepare(const Command& command, const NeededFiles& needed, const VmJail& jail) {
  Entry entry;
  entry.drop_groups = ::geteuid() == 0;
  for (const auto& file : needed.files) add_file(entry.programs, file);
  for (const auto& file : jail.data)
    if (::access(file.c_str(), R_OK) == 0) add_file(entry.programs, file);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/urandom"}) add_file(entry.devices, device);
  if (jail.kvm) add_file(entry.devices, "/dev/kvm");
  for (const auto& [number, path] : jail.copies) entry.copies.emplace_back(number, kNewRoot + path);
  entry.memory = jail.memory;
  if (jail.memory != 0) {
    entry.memory_file = std::string(kNewRoot) + kMemoryFile;
    entry.memory_directory = parent_path(entry.memory_file);
  }
  // Two inodes: the folder and the file.
  entry.memory_options = "mode=0700,nr_inodes=2,size=" + std::to_string(jail.memory);
  add_parents(entry);
  TRY_ASSIGN(const uint64_t copied, size_of_copies(command, jail));
  entry.root_options = "mode=0755,nr_inodes=" +
                       std::to_string(2 + entry.directories.size() + entry.programs.size() +
                                      entry.devices.size() + entry.copies.size()) +
                       ",size=" + std::to_string(copied + (1u << 20));
  entry.address_space = jail.address_space;
  entry.file_size = jail.file_size;
  entry.threads = jail.threads;
  entry.broken = jail.broken;
  if (jail.filtered) {
    TRY_ASSIGN(entry.filter, vm_filter());
  }
  return entry;
}

Result<UniqueFd> receive_descriptor(int socket) {
  char byte;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
    return unavailable("its memory does not arrive", errno);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
    return unavailable("its memory does not arrive", 0);
  int fd = -1;
  ::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

}  // namespace

Result<Jailed> spawn_jailed(Command command, const VmJail& jail) {
  const std::string program = find_program(command.argv.at(0));
  if (program.empty())
    return fail("process.not_found", command.argv[0] + ": not found in PATH",
                "install it, or run: firestop doctor");
  TRY_ASSIGN(const NeededFiles needed, needed_files(program, jail.modules));
  TRY_ASSIGN(Entry entry, prepare(command, needed, jail));
  const SharedStep step;
  if (!step.valid()) return fail_errno("jail.unavailable", "no memory");
  *step.get() = Step{0};
  entry.reached = step.get();

  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("jail.unavailable", "cannot make a socket pair");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  entry.report = 3;
  for (const auto& pair : command.descriptors) entry.report = std::max(entry.report, pair.second + 1);
  command.descriptors.emplace_back(theirs.get(), entry.report);

  command.argv[0] = program;
  command.env = {"LC_ALL=C", library_path(needed)};
  command.directory.clear();
  command.namespaces = kNamespaces;
  command.before_exec = enter;
  command.before_exec_context = &entry;
  command.admit = [&](pid_t pid) -> Result<void> {
    if (jail.admit) TRY(jail.admit(pid));
    return give_identity(pid, entry, jail.kvm);
  };
  Jailed out;
  auto child = spawn(command);
  theirs.reset();
  if (!child) {
    if (child.error().code.starts_with("jail.")) return tl::unexpected(child.error());
    const Step at = *step.get();
    return unavailable(at == Step{0} ? "namespaces are refused" : to_string(at), child.error().sys_errno);
  }
  out.child = std::move(*child);
  if (jail.memory != 0) {
    auto memory = receive_descriptor(ours.get());
    if (!memory) {
      out.child.kill_and_wait();
      return tl::unexpected(memory.error());
    }
    out.memory = std::move(*memory);
  }
  return out;
}

Result<void> try_jail(const std::string& program) {
  Command command;
  command.argv = {program, "--version"};
  VmJail jail;
  jail.memory = 1u << 20;
  TRY_ASSIGN(Jailed jailed, spawn_jailed(std::move(command), jail));
  if (const int status = jailed.child.wait(); status != 0)
    return unavailable(program + " in it: " + describe_status(status), 0);
  return {};
}

}  // namespace firestop::jail
