// Where the running program and what belongs to it lie.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::image {

// The absolute path of the folder of the running program.
std::string program_folder();
// The guest's static program: $FIRESTOP_GUEST, beside the running program, or ../libexec/firestop/.
// Errors: "image.no_guest".
Result<std::string> guest_program();

}  // namespace firestop::image
