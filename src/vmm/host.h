// What identifies this host, as far as a guest's snapshot or a probe's answer depends on it.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::vmm {

// /proc/sys/kernel/random/boot_id; "unknown" if it cannot be read.
std::string boot_id();
// Changes whenever the file may have changed: device, inode, size, and times of change. Costs no reading.
Result<std::string> file_identity(const std::string& path);
// Model and features of the first processor, as text. From /proc/cpuinfo.
std::string processor_identity();
// The part of /proc/cpuinfo that tells processors apart, without what changes while they run ("cpu MHz").
std::string processor_identity_of(std::string_view cpuinfo);
// The absolute path of QEMU, or "vmm.no_qemu".
Result<std::string> qemu_program();

}  // namespace firestop::vmm
