// Paths as a record has them.
#pragma once

#include <string>
#include <string_view>

namespace firestop::story {

// An absolute path in its shortest form: `path` as seen from `directory`; "" where that is not known.
std::string resolve_path(std::string_view directory, std::string_view path);

inline constexpr char kWorkspace[] = "/workspace";
// A path of the record: those without a slash in front are the workspace's.
inline std::string recorded_path(const std::string& path) {
  return resolve_path(kWorkspace, path);
}

}  // namespace firestop::story
