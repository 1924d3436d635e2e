#include "image/recipe.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/path.h"
#include "image/program.h"

namespace firestop::image {

namespace {

constexpr uint64_t kRecipeLimit = 64 << 10;

bool all_of(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [more](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || more.find(c) != std::string_view::npos;
  });
}

// Debian Policy 5.6.7; such a name is never taken for an option either.
bool valid_package(std::string_view name) {
  return name.size() >= 2 && name.size() <= 128 && all_of(name.substr(0, 1), "") && all_of(name, "+-.");
}

bool valid_suite(std::string_view name) {
  return !name.empty() && name.size() <= 32 && all_of(name.substr(0, 1), "") && all_of(name, "-");
}

bool valid_pattern(std::string_view pattern) {
  return pattern.size() >= 2 && pattern.size() <= 256 && pattern[0] == '/' &&
         std::all_of(pattern.begin(), pattern.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

// What is wrong with the words of one line, or empty.
std::string take_line(Recipe& recipe, const std::vector<std::string>& words) {
  const std::string& key = words[0];
  if (words.size() < 2) return "'" + key + "' needs a value";
  const auto each = [&words](auto valid, std::vector<std::string>& out) -> std::string {
    for (size_t i = 1; i < words.size(); ++i) {
      if (!valid(words[i])) return "'" + words[i] + "' cannot stand behind '" + words[0] + "'";
      out.push_back(words[i]);
    }
    return "";
  };
  const auto one = [&words](auto valid, std::string& out) -> std::string {
    if (words.size() != 2 || !valid(words[1])) return "'" + words[0] + "' needs one plain name";
    if (!out.empty()) return "a second '" + words[0] + "'";
    out = words[1];
    return "";
  };
  if (key == "suite") return one(valid_suite, recipe.suite);
  if (key == "kernel") return one(valid_package, recipe.kernel_package);
  if (key == "packages") return each(valid_package, recipe.packages);
  if (key == "remove") return each(valid_pattern, recipe.remove);
  if (key == "keep") return each(valid_pattern, recipe.keep);
  return "unknown key '" + key + "'; expected suite, kernel, packages, remove or keep";
}

}  // namespace

std::string Recipe::canonical() const {
  std::string out = "suite " + suite + "\nkernel " + kernel_package + "\n";
  for (const std::string& package : packages) out += "package " + package + "\n";
  for (const std::string& pattern : remove) out += "remove " + pattern + "\n";
  for (const std::string& pattern : keep) out += "keep " + pattern + "\n";
  return out;
}

Result<Recipe> parse_recipe(std::string_view text, const std::string& name, const std::string& file) {
  Recipe recipe;
  recipe.name = name;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const std::vector<std::string> words = split(line);
    if (words.empty()) continue;
    const std::string wrong = take_line(recipe, words);
    if (!wrong.empty()) return fail("image.bad_recipe", file + ":" + std::to_string(number) + ": " + wrong);
  }
  if (recipe.suite.empty()) return fail("image.bad_recipe", file + ": the line 'suite' is missing");
  if (recipe.kernel_package.empty()) return fail("image.bad_recipe", file + ": the line 'kernel' is missing");
  std::sort(recipe.packages.begin(), recipe.packages.end());
  recipe.packages.erase(std::unique(recipe.packages.begin(), recipe.packages.end()), recipe.packages.end());
  return recipe;
}

bool valid_image_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' && all_of(name, "-");
}

std::vector<std::string> recipe_folders() {
  std::vector<std::string> folders;
  if (const char* named = std::getenv("FIRESTOP_IMAGES"); named != nullptr && *named == '/')
    folders.emplace_back(named);
  const std::string here = program_folder();
  folders.push_back(here + "/../../images");
  folders.push_back(here + "/../share/firestop/images");
  return folders;
}

Result<Recipe> load_recipe(const std::string& name) {
  if (name.starts_with("oci:")) {
    return fail("image.unsupported", "image '" + name + "': OCI images are not supported yet",
                "name a recipe, for example agent-base");
  }
  if (!valid_image_name(name)) {
    return fail("image.bad_name", "'" + name + "' is no name of an image",
                "an image's name is a lower-case letter followed by such letters, digits and '-'");
  }
  for (const std::string& folder : recipe_folders()) {
    const std::string file = folder + "/" + name + "/recipe";
    if (!exists(file)) continue;
    TRY_ASSIGN(const std::string text, read_file(file, kRecipeLimit));
    return parse_recipe(text, name, file);
  }
  std::string known;
  for (const std::string& other : recipe_names()) known += (known.empty() ? "" : ", ") + other;
  return fail(
      "image.unknown", "there is no recipe for an image '" + name + "'",
      known.empty() ? "set FIRESTOP_IMAGES to the folder that holds the recipes" : "known images: " + known);
}

std::vector<std::string> recipe_names() {
  std::set<std::string> names;
  for (const std::string& folder : recipe_folders()) {
    std::error_code ignored;
    for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end;
         at.increment(ignored)) {
      const std::string name = at->path().filename().string();
      if (valid_image_name(name) && exists(folder + "/" + name + "/recipe")) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace firestop::image
