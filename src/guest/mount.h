// mount(2) with errors that say what was mounted where.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::guest {

Result<void> mount_at(const std::string& source, const std::string& target, const char* type,
                      unsigned long flags, const std::string& data = {});
// Makes the mount at `target` read-only; `flags` are the other flags that it keeps.
Result<void> remount_read_only(const std::string& target, unsigned long flags);
// One directory; fine if it is there.
Result<void> make_directory(const std::string& path, unsigned mode);
// Bytes into a file of the kernel's (/proc, /sys, cgroup), with one write.
Result<void> write_kernel_file(const std::string& path, const std::string& value);
// The mount points at and below `place`, in the order in which they were mounted.
Result<std::vector<std::string>> mounts_below(const std::string& place);
// The first line of such a file.
Result<std::string> read_kernel_file(const std::string& path);

}  // namespace firestop::guest
