#include "report/path_patterns.h"

#include <algorithm>
#include <map>

#include "manifest/cover.h"
#include "manifest/rules.h"

namespace firestop::report {
namespace {

bool is_allowed(const std::vector<std::string>& allowed, const std::string& pattern) {
  if (!manifest::why_not_request_path(pattern).empty()) return false;
  return allowed.empty() || std::any_of(allowed.begin(), allowed.end(), [&pattern](const std::string& wide) {
           return manifest::pattern_covers(wide, pattern);
         });
}

// Numbers, and hexadecimal of eight digits and more with at least one number in it: ids, commits, UUIDs.
bool is_id(std::string_view component) {
  if (component.empty()) return false;
  if (component.find_first_not_of("0123456789") == std::string_view::npos) return true;
  return component.size() >= 8 &&
         component.find_first_not_of("0123456789abcdefABCDEF-") == std::string_view::npos &&
         component.find_first_of("0123456789") != std::string_view::npos;
}

std::string with_ids_open(const std::string& path) {
  std::string out;
  for (size_t at = 1; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const auto component = std::string_view(path).substr(at, end - at);
    out += "/";
    out += is_id(component) ? "*" : component;
    at = end + 1;
  }
  return out;
}

std::string folder_of(const std::string& pattern) {
  return pattern.substr(0, pattern.rfind('/'));
}

size_t depth_of(const std::string& pattern) {
  return static_cast<size_t>(std::count(pattern.begin(), pattern.end(), '/'));
}

// Puts the folder's patterns together, if what it gives is allowed.
bool fold(std::set<std::string>& patterns, const std::string& folder,
          const std::vector<std::string>& allowed) {
  const std::string all = folder + "/**";
  if (!is_allowed(allowed, all)) return false;
  std::erase_if(patterns, [&folder](const std::string& each) { return each.starts_with(folder + "/"); });
  patterns.insert(all);
  return true;
}

}  // namespace

std::vector<std::string> path_patterns(const std::set<std::string>& paths,
                                       const std::vector<std::string>& allowed) {
  std::set<std::string> patterns;
  for (const auto& path : paths) {
    if (path.find_first_of("*?#") != std::string::npos || !manifest::why_not_request_path(path).empty())
      return {};
    const std::string open = with_ids_open(path);
    patterns.insert(is_allowed(allowed, open) ? open : path);
  }
  std::set<std::string> tried;
  while (true) {
    std::map<std::string, size_t> folders;
    for (const auto& pattern : patterns) ++folders[folder_of(pattern)];
    // The deepest first; the top folder, which would be every path, only where there is no other way.
    const std::string* best = nullptr;
    for (const auto& [folder, count] : folders) {
      if (folder.empty() || tried.contains(folder) || count < 2) continue;
      const bool many = count > kManySiblings || patterns.size() > kMostPatterns;
      if (many && (!best || depth_of(folder) > depth_of(*best))) best = &folder;
    }
    if (!best) break;
    const std::string folder = *best;
    tried.insert(folder);
    (void)fold(patterns, folder, allowed);
  }
  if (patterns.size() > kMostPatterns * 2) return {};
  // "/v1/a" is said by "/v1/**".
  std::vector<std::string> out;
  for (const auto& pattern : patterns) {
    const bool said = std::any_of(patterns.begin(), patterns.end(), [&pattern](const std::string& other) {
      return other != pattern && manifest::pattern_covers(other, pattern);
    });
    if (!said) out.push_back(pattern);
  }
  return out;
}

}  // namespace firestop::report
