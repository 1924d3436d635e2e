// Whether a record says that all there was to see was seen and kept. Not whether it is true: that is for
// integrity, and for what docs/evidence.md says of a guest that was taken over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "evidence/event.h"

namespace firestop::evidence {

class Completeness {
 public:
  void take(const Event& event);          // each, in order
  std::vector<std::string> gaps() const;  // in words; none: complete

 private:
  std::map<std::string, uint64_t> lost_;  // by what, bounded
  std::vector<std::string> missing_;      // collectors, bounded
  bool spoke_ = false, done_ = false, ended_ = false, said_complete_ = false;
};

}  // namespace firestop::evidence
