// What is in a record's content store, to be read back: bytes that a guest chose, in files that somebody may
// have changed since.
#pragma once

#include <string>

#include "base/result.h"

namespace firestop::evidence {

inline constexpr size_t kMostContentRead = 64u << 20;  // no content is as large

// The bytes of `digest` in the record in `directory`; links are not followed. "evidence.not_found";
// "evidence.changed": they are not what they were; "evidence.unreadable".
Result<std::string> read_content(const std::string& directory, const std::string& digest);

}  // namespace firestop::evidence
