#include "jail/filter_rules.h"

#include <errno.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"

namespace firestop::jail {
namespace {

constexpr uint64_t kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

Unexpected refused(const std::string& what, int code) {
  return Unexpected(Error{"jail.seccomp", "libseccomp refuses " + what, "", -code});
}

}  // namespace

Result<FilterRules> FilterRules::start() {
  FilterRules rules;
  rules.context_.reset(::seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (!rules.context_) return refused("a new filter", -ENOMEM);
  ::seccomp_arch_remove(rules.context_.get(), SCMP_ARCH_NATIVE);
  if (const int code = ::seccomp_arch_add(rules.context_.get(), SCMP_ARCH_X86_64); code != 0)
    return refused("x86-64", code);
  ::seccomp_attr_set(rules.context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  // A binary tree: some eight steps a call.
  ::seccomp_attr_set(rules.context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  return rules;
}

Result<void> FilterRules::add(uint32_t action, const char* name,
                              std::initializer_list<scmp_arg_cmp> conditions) {
  const int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name);
  // A name newer than the library: the call then has the answer of all that are not listed.
  if (number == __NR_SCMP_ERROR) return {};
  const int code = ::seccomp_rule_add_array(context_.get(), action, number,
                                            static_cast<unsigned>(conditions.size()), conditions.begin());
  if (code != 0) return refused(std::string("a rule for ") + name, code);
  return {};
}

Result<void> FilterRules::allow(Names names) {
  for (const char* name : names) TRY(add(SCMP_ACT_ALLOW, name, {}));
  return {};
}

Result<void> FilterRules::allow(const char* name, std::initializer_list<scmp_arg_cmp> conditions) {
  return add(SCMP_ACT_ALLOW, name, conditions);
}

Result<void> FilterRules::absent(Names names) {
  for (const char* name : names) TRY(add(SCMP_ACT_ERRNO(ENOSYS), name, {}));
  return {};
}

Result<void> FilterRules::allow_threads() {
  return allow("clone", {SCMP_A0_64(SCMP_CMP_MASKED_EQ, kNamespaces | CLONE_VM | CLONE_THREAD,
                                    CLONE_VM | CLONE_THREAD)});
}

Result<void> FilterRules::allow_common_ioctls() {
  // The kernel looks at the lower half of the number only, so the conditions do.
  for (const uint64_t number : std::initializer_list<uint64_t>{TCGETS, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX})
    TRY(allow("ioctl", {SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xffffffff, number)}));
  return {};
}

Result<std::string> FilterRules::finish() const {
  const UniqueFd memory(::memfd_create("filter", MFD_CLOEXEC));
  if (!memory.valid()) return fail_errno("jail.seccomp", "cannot make a memory file");
  if (const int code = ::seccomp_export_bpf(context_.get(), memory.get()); code != 0)
    return refused("to write the filter", code);
  ::lseek(memory.get(), 0, SEEK_SET);
  return read_all(memory.get(), 64u << 10);
}

}  // namespace firestop::jail
