#include "guest/network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/file.h"

namespace firestop::guest {
namespace {

constexpr char kOurs[] = "/proc/self/ns/net";

// A new network namespace has one device, and that is down.
Result<void> raise_loopback() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  ::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (!socket.valid() || ::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0)
    return fail_errno("guest.network", "cannot raise the loopback device");
  return {};
}

}  // namespace

Result<UniqueFd> make_container_network() {
  TRY_ASSIGN(const UniqueFd old, open_file(kOurs, O_RDONLY));
  if (::unshare(CLONE_NEWNET) != 0) return fail_errno("guest.network", "cannot make a network namespace");
  TRY(raise_loopback());
  TRY_ASSIGN(UniqueFd made, open_file(kOurs, O_RDONLY));
  if (::setns(old.get(), CLONE_NEWNET) != 0) return fail_errno("guest.network", "cannot come back");
  return made;
}

}  // namespace firestop::guest
