// Takes file access away from this process, but for reading what is named. landlock(7).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::jail {

enum class Landlocked { kYes, kNotHere };  // kNotHere: the kernel has no Landlock, or it is switched off

// For good, this thread and those that it makes from now on. What does not exist is passed over; folders are
// meant with all that is in them. Sets no_new_privs. Error: "jail.landlock".
Result<Landlocked> read_only_these(const std::vector<std::string>& paths);

}  // namespace firestop::jail
