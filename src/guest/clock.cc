#include "guest/clock.h"

#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/fd.h"

namespace firestop::guest {
namespace {

constexpr size_t kSeedBytes = 64;

}  // namespace

Result<void> reseed(std::string_view seed) {
  if (seed.size() != kSeedBytes) return fail("guest.seed", "the seed is not of 64 bytes");
  struct {  // rand_pool_info with its bytes
    int entropy_count, buf_size;
    char bytes[kSeedBytes];
  } entropy;
  static_assert(sizeof entropy == sizeof(rand_pool_info) + kSeedBytes);
  entropy.entropy_count = kSeedBytes * 8;
  entropy.buf_size = kSeedBytes;
  ::memcpy(entropy.bytes, seed.data(), kSeedBytes);
  const UniqueFd random(::open("/dev/urandom", O_WRONLY | O_CLOEXEC));
  const bool done = random.valid() && ::ioctl(random.get(), RNDADDENTROPY, &entropy) == 0 &&
                    ::ioctl(random.get(), RNDRESEEDCRNG) == 0;
  ::explicit_bzero(&entropy, sizeof entropy);
  if (!done) return fail_errno("guest.seed", "cannot reseed the random generator");
  return {};
}

Result<void> set_clock(int64_t ns) {
  const timespec now{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  if (::clock_settime(CLOCK_REALTIME, &now) != 0) return fail_errno("guest.clock", "cannot set the clock");
  return {};
}

}  // namespace firestop::guest
