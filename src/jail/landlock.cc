#include "jail/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

namespace firestop::jail {
namespace {

// Every right that the first version knows: from reading to making devices. Later ones that this kernel knows
// are added by their bits, since headers may be older.
constexpr uint64_t kFirst = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
constexpr uint64_t kRefer = 1ull << 13, kTruncate = 1ull << 14, kDeviceIoctl = 1ull << 15;

uint64_t rights_of(long version) {
  uint64_t rights = kFirst;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kDeviceIoctl;
  return rights;
}

Result<void> allow(int rules, const std::string& path) {
  const UniqueFd at(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!at.valid()) return {};  // nothing there to be read
  struct stat what{};
  if (::fstat(at.get(), &what) != 0) return fail_errno("jail.landlock", "cannot look at " + path);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
  if (S_ISDIR(what.st_mode)) rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
  rule.parent_fd = at.get();
  if (::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return fail_errno("jail.landlock", "cannot leave " + path + " readable");
  return {};
}

}  // namespace

Result<Landlocked> read_only_these(const std::vector<std::string>& paths) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("jail.landlock", "cannot renounce new privileges");
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 0 && (errno == ENOSYS || errno == EOPNOTSUPP)) return Landlocked::kNotHere;
  if (version < 0) return fail_errno("jail.landlock", "cannot ask for Landlock");
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = rights_of(version);
  const UniqueFd rules(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0)));
  if (!rules.valid()) return fail_errno("jail.landlock", "cannot make a set of rules");
  for (const auto& path : paths) TRY(allow(rules.get(), path));
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0)
    return fail_errno("jail.landlock", "cannot take file access away");
  return Landlocked::kYes;
}

}  // namespace firestop::jail
