#include "vmm/tsc.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "vmm/host.h"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace firestop::vmm {
namespace {

#if defined(__x86_64__)
struct Moment {
  int64_t ns = 0;
  uint64_t ticks = 0;
};

int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Both clocks at one moment: of several tries the one that was interrupted least.
Moment read_clocks() {
  Moment best;
  int64_t narrowest = INT64_MAX;
  for (int i = 0; i < 16; ++i) {
    const int64_t before = monotonic_ns();
    const uint64_t ticks = __rdtsc();
    const int64_t after = monotonic_ns();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + (after - before) / 2, ticks};
  }
  return best;
}
#endif

bool plausible(uint64_t khz) {
  return khz >= 100'000 && khz <= 20'000'000;
}

}  // namespace

Result<uint64_t> calibrate_tsc_khz() {
#if defined(__x86_64__)
  const Moment start = read_clocks();
  timespec pause{0, 20'000'000};
  ::nanosleep(&pause, nullptr);
  const Moment end = read_clocks();
  const double khz =
      static_cast<double>(end.ticks - start.ticks) * 1e6 / static_cast<double>(end.ns - start.ns);
  if (khz >= 1 && khz < 1e9) {
    const auto rounded = static_cast<uint64_t>(std::llround(khz));
    if (plausible(rounded)) return rounded;
  }
  return fail("vmm.tsc",
              "the processor's time stamp counter does not run evenly (" + std::to_string(khz) + " kHz)");
#else
  return fail("vmm.tsc", "only x86-64 hosts are supported");
#endif
}

Result<uint64_t> tsc_khz(const std::string& cache_file) {
  const std::string boot = boot_id();
  if (const auto text = read_file(cache_file, 4096)) {
    const auto cached = codec::parse_json(*text);
    if (cached && cached->string_or("boot_id", "") == boot) {
      const auto khz = static_cast<uint64_t>(std::max<int64_t>(cached->int_or("khz", 0), 0));
      if (plausible(khz)) return khz;
    }
  }
  TRY_ASSIGN(const uint64_t khz, calibrate_tsc_khz());
  // A host without a place to write calibrates each time.
  if (make_directories(parent_path(cache_file)))
    (void)write_file_atomic(cache_file,
                            codec::write_json(codec::JsonObject{{"boot_id", boot}, {"khz", khz}}) + "\n");
  return khz;
}

bool same_tsc_rate(uint64_t then, uint64_t now) {
  const uint64_t apart = then > now ? then - now : now - then;
  return then != 0 && apart <= now / 1000;
}

}  // namespace firestop::vmm
