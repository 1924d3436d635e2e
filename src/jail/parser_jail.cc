#include "jail/parser_jail.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "jail/parser_filter.h"
#include "jail/root_view.h"

namespace firestop::jail {
namespace {

constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;
constexpr uint64_t kMostThreads = 256;

Unexpected unavailable(const std::string& what, int number) {
  return jail_unavailable("the jail of what reads results", what, number);
}

Result<void> give_identity(pid_t pid, Identity identity) {
  if ((::geteuid() == 0 || deny_setgroups(pid)) && map_identity(pid, identity, identity)) return {};
  return unavailable("its user cannot be mapped", errno);
}

}  // namespace

Result<ParserJail> ParserJail::prepare(const std::string& program, std::vector<Folder> folders,
                                       Identity owner) {
  ParserJail jail;
  jail.program_ = find_program(program);
  if (jail.program_.empty())
    return fail("process.not_found", program + ": not found in PATH", "install it, or run: firestop doctor");
  TRY_ASSIGN(jail.needed_, needed_files(jail.program_, {}));
  TRY_ASSIGN(jail.filter_, parser_filter());
  jail.folders_ = std::move(folders);
  jail.identity_ = ::geteuid() == 0 ? owner : Identity{::geteuid(), ::getegid()};
  return jail;
}

ParserJail ParserJail::seeing(std::vector<Folder> folders) const {
  ParserJail other = *this;
  other.folders_ = std::move(folders);
  return other;
}

Result<Child> ParserJail::start(Command command, const ParserLimits& limits) const {
  const SharedStep step;
  if (!step.valid()) return fail_errno("jail.unavailable", "no memory");
  *step.get() = Step{0};
  Entry entry;
  entry.uid = identity_.uid;
  entry.gid = identity_.gid;
  entry.drop_groups = ::geteuid() == 0;
  for (const auto& file : needed_.files) add_file(entry.programs, file);
  for (const char* device : {"/dev/null", "/dev/urandom"}) add_file(entry.devices, device);
  for (const auto& folder : folders_)
    entry.bound.push_back({folder.path, kNewRoot + folder.path, folder.writable});
  add_parents(entry);
  entry.root_options =
      "mode=0755,size=1m,nr_inodes=" +
      std::to_string(2 + entry.directories.size() + entry.programs.size() + entry.devices.size());
  entry.address_space = limits.address_space;
  entry.file_size = limits.file_size;
  entry.processor_seconds = limits.processor_seconds;
  entry.threads = kMostThreads;
  entry.filter = filter_;
  entry.broken = broken_;
  entry.reached = step.get();

  command.argv.at(0) = program_;
  if (!command.env) command.env.emplace();
  command.env->push_back(library_path(needed_));
  command.directory.clear();
  command.namespaces = kNamespaces;
  command.before_exec = enter;
  command.before_exec_context = &entry;
  command.admit = [&](pid_t pid) { return give_identity(pid, identity_); };
  auto child = spawn(command);
  if (child || child.error().code.starts_with("jail.")) return child;
  const Step at = *step.get();
  return unavailable(at == Step{0} ? "namespaces are refused" : to_string(at), child.error().sys_errno);
}

}  // namespace firestop::jail
