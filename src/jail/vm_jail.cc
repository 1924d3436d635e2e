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
#include "jail/needed_files.h"
#include "jail/root_view.h"
#include "jail/vm_filter.h"

namespace firestop::jail {
namespace {

constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;
// A user of root's jails is nobody else's; beside it what every host has for the purpose.
constexpr uint32_t kFirstId = 0x70000000, kNobody = 65534;

// A page that parent and child both see: which step was reached.
class SharedStep {
 public:
  SharedStep() : at_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedStep() {
    if (valid()) ::munmap(at_, 4096);
  }
  SharedStep(const SharedStep&) = delete;
  SharedStep& operator=(const SharedStep&) = delete;
  bool valid() const { return at_ != MAP_FAILED; }
  Step* get() const { return static_cast<Step*>(at_); }

 private:
  void* at_;
};

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

Unexpected unavailable(const std::string& what, int number) {
  Error error{"jail.unavailable", "the machine's jail cannot be made: " + what, hint(), number};
  if (number != 0) error.message += std::string(": ") + ::strerror(number);
  return Unexpected(std::move(error));
}

bool write_map(pid_t pid, const char* name, const std::string& text) {
  const UniqueFd fd(::open(("/proc/" + std::to_string(pid) + "/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool map_identity(pid_t pid, uint32_t inside, uint32_t uid, uint32_t gid) {
  const auto line = [inside](uint32_t outside) {
    return std::to_string(inside) + " " + std::to_string(outside) + " 1";
  };
  return write_map(pid, "uid_map", line(uid)) && write_map(pid, "gid_map", line(gid));
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
    if (write_map(pid, "setgroups", "deny") && map_identity(pid, entry.id, ::geteuid(), ::getegid()))
      return {};
    return unavailable("its user cannot be mapped", errno);
  }
  const auto group = kvm ? kvm_group() : std::nullopt;
  for (const uint32_t id : {kFirstId + (static_cast<uint32_t>(pid) & 0xffffffu), kNobody})
    if (map_identity(pid, entry.id, id, group.value_or(id))) return {};
  return unavailable("its user cannot be mapped to one without rights", errno);
}

void add_file(std::vector<std::pair<std::string, std::string>>& list, const std::string& path) {
  const std::string target = kNewRoot + path;
  if (std::none_of(list.begin(), list.end(), [&](const auto& pair) { return pair.second == target; }))
    list.emplace_back(path, target);
}

void add_directories(Entry& entry, bool memory) {
  std::set<std::string> all;
  const auto add = [&](const std::string& target) {
    for (std::string at = parent_path(target); at.size() > std::string_view(kNewRoot).size();
         at = parent_path(at))
      all.insert(at);
  };
  for (const auto* list : {&entry.programs, &entry.devices})
    for (const auto& pair : *list) add(pair.second);
  for (const auto& pair : entry.copies) add(pair.second);
  if (memory) add(entry.memory_file);
  entry.directories.assign(all.begin(), all.end());  // a parent sorts before what is in it
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
  entry.memory_file = std::string(kNewRoot) + kMemoryFile;
  entry.memory_directory = parent_path(entry.memory_file);
  // Two inodes: the folder and the file.
  entry.memory_options = "mode=0700,nr_inodes=2,size=" + std::to_string(jail.memory);
  add_directories(entry, jail.memory != 0);
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
      return "the guest's memory";
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
  std::string search;
  for (const auto& directory : needed.directories) search += (search.empty() ? "" : ":") + directory;
  command.env = {"LC_ALL=C", "LD_LIBRARY_PATH=" + search};
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
