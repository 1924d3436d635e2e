// How fast the processor's time stamp counter runs. A TCG guest reads the host's counter, cannot measure it
// reliably, and so is told.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace firestop::vmm {

// Ticks a millisecond, measured against CLOCK_MONOTONIC for some 20 ms. Errors: "vmm.tsc" when the answer is
// implausible (below 100 MHz, above 20 GHz) or the processor has no such counter.
Result<uint64_t> calibrate_tsc_khz();
// The same, kept in `cache_file` for as long as the host runs. A cache that cannot be used is no error.
Result<uint64_t> tsc_khz(const std::string& cache_file);
// Whether a guest that was told `then` keeps time well enough where `now` is true: within 0.1 %, which is
// twice what NTP may slew.
bool same_tsc_rate(uint64_t then, uint64_t now);

}  // namespace firestop::vmm
