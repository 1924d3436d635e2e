// A system call filter in the making, for x86-64: what is not allowed fails with EPERM, other ways to call
// (32-bit, x32) end the process. Internal to jail.
#pragma once

#include <seccomp.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace firestop::jail {

class FilterRules {
 public:
  using Names = std::span<const char* const>;

  static Result<FilterRules> start();
  Result<void> allow(Names names);
  Result<void> allow(const char* name, std::initializer_list<scmp_arg_cmp> conditions = {});
  // Fails as on a kernel that has never heard of it: libraries then take their second way.
  Result<void> absent(Names names);
  // Threads, which share memory; no process and no namespace.
  Result<void> allow_threads();
  // ioctl(2) that libraries use, and no other.
  Result<void> allow_common_ioctls();
  // An array of struct sock_filter.
  Result<std::string> finish() const;

 private:
  struct Release {
    void operator()(void* context) const { ::seccomp_release(context); }
  };
  FilterRules() = default;
  Result<void> add(uint32_t action, const char* name, std::initializer_list<scmp_arg_cmp> conditions);

  std::unique_ptr<void, Release> context_;
};

}  // namespace firestop::jail
