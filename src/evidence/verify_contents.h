// Whether the content store holds what its names say.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/result.h"

namespace firestop::evidence {

class ContentCheck {
 public:
  // Reads every file of `directory`/content. "evidence.unreadable".
  static Result<ContentCheck> read(const std::string& directory);

  enum class State { kGood, kMissing, kChanged };
  State of(const std::string& digest) const;
  uint64_t files() const { return files_; }
  // Changed, and asked for by nobody yet.
  const std::set<std::string>& changed() const { return changed_; }

 private:
  std::string directory_;
  uint64_t files_ = 0;
  std::set<std::string> changed_;  // digests; beyond kMostChanged they are looked at when asked for
  bool more_ = false;
};

}  // namespace firestop::evidence
