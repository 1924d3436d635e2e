// What ran that nobody had read, each once: the same bytes of the same file, run in the same way, are one
// script however often they ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "story/story.h"

namespace firestop::story {

struct UnreadScript {
  size_t number = 0;           // from 1, in the order of first runs: what `scripts --show` takes
  size_t first = 0, last = 0;  // index into Story::scripts, of its first and its last run
  uint64_t runs = 0;
};

std::vector<UnreadScript> unread_scripts(const Story& story);

}  // namespace firestop::story
