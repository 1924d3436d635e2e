// The executions that seccomp notifies: see notice.h, and exec_guard.h for what that means here.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "guest/notice.h"

namespace firestop::guest {

// For a container's first process: from here on every execution is notified, and there are no memory files.
Result<UniqueFd> install_exec_notices();

// The file that the thread of `account` names (O_PATH); not valid when it cannot be told.
UniqueFd executed_file(const Notice& notice, uid_t account);

// Where an open file lies, for people: inside, of bounded length, "?" when that cannot be told.
std::string place_inside(const UniqueFd& file);

}  // namespace firestop::guest
