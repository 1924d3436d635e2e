// Paths that were asked for, as patterns of an egress rule that somebody would write: exact where they are
// few, "*" for a component that is a number or an id, "**" where many stand side by side.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace firestop::report {

inline constexpr size_t kManySiblings = 4;   // more than so many in one folder become "/folder/**"
inline constexpr size_t kMostPatterns = 12;  // of one rule; beyond it the deepest folders are put together

// Empty where no patterns say it: then the rule's paths stay. None allows more than `allowed` does, which are
// the rule's (empty: every path).
std::vector<std::string> path_patterns(const std::set<std::string>& paths,
                                       const std::vector<std::string>& allowed);

}  // namespace firestop::report
