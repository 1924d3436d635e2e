#include "story/paths.h"

#include <algorithm>
#include <vector>

namespace firestop::story {

std::string resolve_path(std::string_view directory, std::string_view path) {
  if (path.empty()) return {};
  std::string whole(path);
  if (path[0] != '/') {
    if (directory.empty() || directory[0] != '/') return {};
    whole = std::string(directory) + "/" + whole;
  }
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < whole.size();) {
    const size_t end = std::min(whole.find('/', at), whole.size());
    const auto part = std::string_view(whole).substr(at, end - at);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  std::string out;
  for (const auto part : parts) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

}  // namespace firestop::story
