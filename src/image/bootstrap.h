// Gets a root file system and a kernel from Debian: mmdebstrap and apt, as children, with state of their
// own. Nothing of the machine's own apt state is read or changed, except the names of its mirrors and its
// proxy; packages are checked against Debian's keys as always.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "image/recipe.h"

namespace firestop::image {

using Say = std::function<void(const std::string& step)>;

// Installs the recipe's packages and writes `image_path` (EROFS). `work_folder` exists, is empty, on the
// image's file system, and is removed by the caller. Errors: "image.missing_tool", "image.network",
// "image.namespaces", "image.disk_full", "image.build_failed".
Result<void> build_root(const Recipe& recipe, const std::string& work_folder, const std::string& image_path,
                        const Say& say);

// Downloads the newest kernel that `recipe.kernel_package` stands for; the path of its .deb below
// `work_folder`. Errors as above.
Result<std::string> fetch_kernel(const Recipe& recipe, const std::string& work_folder, const Say& say);

// Removes what a build that was killed has left outside its work folder (the path is noted in there).
void remove_leftovers(const std::string& work_folder);

// The error behind what apt, dpkg or mmdebstrap printed; `what` begins the message.
Unexpected explain_failure(const std::string& what, const std::string& output);

}  // namespace firestop::image
