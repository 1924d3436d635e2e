#include "story/script_list.h"

#include <string>
#include <unordered_map>

namespace firestop::story {

std::vector<UnreadScript> unread_scripts(const Story& story) {
  std::vector<UnreadScript> out;
  std::unordered_map<std::string, size_t> known;
  for (size_t i = 0; i < story.scripts.size(); ++i) {
    const Script& script = story.scripts[i];
    const std::string key = script.how + '\0' + script.path + '\0' + script.digest + '\0' + script.note;
    const auto [at, fresh] = known.try_emplace(key, out.size());
    if (fresh) out.push_back({out.size() + 1, i, i, 0});
    out[at->second].last = i;
    ++out[at->second].runs;
  }
  return out;
}

}  // namespace firestop::story
