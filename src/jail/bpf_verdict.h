// For tests: what the kernel would say to a system call under a filter, without installing it.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace firestop::jail {

// An interpreter for the subset of classic BPF that seccomp(2) allows. nullopt: no program that the kernel
// would run.
std::optional<uint32_t> verdict(const std::vector<sock_filter>& program, const seccomp_data& call);

}  // namespace firestop::jail
