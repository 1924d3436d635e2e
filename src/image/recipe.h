// What an image is made of: a text file `recipe` in a folder that is named like the image.
//
//   suite     bookworm                    one Debian suite
//   kernel    linux-image-cloud-amd64     the package whose newest version gives the guest's kernel
//   packages  git python3                 names of packages, any number of lines
//   remove    /usr/share/man/*            fnmatch(3) patterns of what is left out, and
//   keep      /usr/share/doc/*/copyright  of what stays nevertheless
//
// '#' begins a comment. An unknown key, a second suite or kernel, and anything that is no plain name is
// an error with its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::image {

struct Recipe {
  std::string name;
  std::string suite;
  std::string kernel_package;
  std::vector<std::string> packages;
  std::vector<std::string> remove, keep;

  // Everything that has an effect on the image, in one normal form.
  std::string canonical() const;
};

// `file` is for messages. Errors: "image.bad_recipe".
Result<Recipe> parse_recipe(std::string_view text, const std::string& name, const std::string& file);

// The folders that hold recipes, in the order in which they count: $FIRESTOP_IMAGES, the source tree
// that the running program was built in, the installed ones.
std::vector<std::string> recipe_folders();
// Errors: "image.bad_name", "image.unknown".
Result<Recipe> load_recipe(const std::string& name);
// The names of all images that have a recipe.
std::vector<std::string> recipe_names();
// A lower-case letter, then up to 63 of those, digits and '-'.
bool valid_image_name(std::string_view name);

}  // namespace firestop::image
