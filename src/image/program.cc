#include "image/program.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/path.h"

namespace firestop::image {

std::string program_folder() {
  char buffer[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", buffer, sizeof buffer);
  if (size <= 0) return "/usr/bin";
  return parent_path(std::string_view(buffer, static_cast<size_t>(size)));
}

Result<std::string> guest_program() {
  if (const char* named = std::getenv("FIRESTOP_GUEST"); named != nullptr && *named != '\0') {
    if (exists(named)) return std::string(named);
    return fail("image.no_guest", std::string("FIRESTOP_GUEST names '") + named + "', which does not exist");
  }
  const std::string here = program_folder();
  for (const char* place : {"/firestop-guest", "/../libexec/firestop/firestop-guest"}) {
    if (exists(here + place)) return here + place;
  }
  return fail("image.no_guest",
              "the guest's program 'firestop-guest' is neither in '" + here + "' nor in '" + here +
                  "/../libexec/firestop'",
              "build or install Firestop whole, or set FIRESTOP_GUEST");
}

}  // namespace firestop::image
