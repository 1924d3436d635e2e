// Which control groups this process could use: the caps that hold QEMU itself, beside those in the guest.
#include "cli/doctor_checks.h"
#include "jail/cgroup_site.h"

namespace firestop::cli {
namespace {

constexpr const char* kMeaning =
    "a machine's memory, processors and threads are capped by QEMU, by process limits and by the guest's "
    "kernel; no control group caps all of QEMU as a whole";

}  // namespace

Check check_cgroups(const std::string& root) {
  const jail::CgroupSite site = jail::find_cgroups(root);
  Check check{"cgroups", "control groups", Health::kOk, site.found, "", ""};
  if (site.complete()) return check;
  check.health = Health::kDegraded;
  if (!site.why.empty()) check.found += ": " + site.why;
  check.meaning = kMeaning;
  check.mend = site.mend.empty() ? "run it as root, or use a host with control groups v2" : site.mend;
  return check;
}

}  // namespace firestop::cli
