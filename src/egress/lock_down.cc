#include "egress/lock_down.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>

#include "jail/network_filter.h"

namespace firestop::egress {
namespace {

Result<void> limit(__rlimit_resource resource, uint64_t value, const char* name) {
  rlimit now{};
  ::getrlimit(resource, &now);
  const uint64_t most = std::min<uint64_t>(value, now.rlim_max);
  const rlimit both{most, most};
  if (::setrlimit(resource, &both) != 0)
    return fail_errno("egress.lock_down", std::string("cannot set the limit ") + name);
  return {};
}

// Sanitizers map more than any limit.
#if defined(FIRESTOP_ASAN) || defined(FIRESTOP_TSAN)
constexpr bool kShadowed = true;
#else
constexpr bool kShadowed = false;
#endif

}  // namespace

Result<void> keep_to_itself(uint32_t connections) {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    return fail_errno("egress.lock_down", "cannot keep others from looking into the egress process");
  TRY(limit(RLIMIT_CORE, 0, "core"));
  TRY(limit(RLIMIT_MSGQUEUE, 0, "msgqueue"));
  // Whatever a guest makes it hold: beyond that it ends, and the run with it.
  if (!kShadowed) TRY(limit(RLIMIT_DATA, kMostMemory, "data"));
  // One to the guest and one to the origin each, and some for names and files.
  return limit(RLIMIT_NOFILE, uint64_t{2} * connections + 256, "nofile");
}

Result<jail::Landlocked> lock_down(const std::vector<std::string>& readable, Writes writes) {
  TRY_ASSIGN(const std::string filter, jail::network_filter());
  if (writes == Writes::kNothing) TRY(limit(RLIMIT_FSIZE, 0, "fsize"));
  TRY(jail::drop_capabilities());
  TRY_ASSIGN(const auto landlocked, jail::read_only_these(readable));
  TRY(jail::install_filter(filter));
  // Dropping capabilities may have made it open again (prctl(2)).
  if (::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
    return fail("egress.lock_down", "the egress process is open to others");
  return landlocked;
}

}  // namespace firestop::egress
