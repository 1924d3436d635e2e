// Whether a pattern or rule allows all that another does. In doubt no: a diff then says that it opens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "manifest/manifest.h"

namespace firestop::manifest {

// Of hosts: a name, "*.name" (one label more) or "**.name" (any number of labels more).
bool host_covers(std::string_view wide, std::string_view narrow);
// Of networks in CIDR notation.
bool cidr_covers(std::string_view wide, std::string_view narrow);
// Of request paths and refs: "*" stands for a part between slashes, "**" for any number of them.
bool pattern_covers(std::string_view wide, std::string_view narrow);
// Whether something can be both. In doubt yes.
bool hosts_meet(std::string_view a, std::string_view b);
bool patterns_meet(std::string_view a, std::string_view b);
// Of folders: the same one, or one that the other lies in.
bool folder_covers(std::string_view wide, std::string_view narrow);

// Lists of methods or paths, where an empty one stands for every one.
bool any_covers(const std::vector<std::string>& wide, std::string_view narrow);

// Of push options: a text, or its beginning and "*". An empty list allows none.
bool option_covered(const std::vector<std::string>& wide, std::string_view narrow);

// Whether two rules speak of the same or of nested destinations in the same manner.
bool same_kind(const EgressRule& a, const EgressRule& b);
bool destination_covers(const EgressRule& wide, const EgressRule& narrow);
// Whether `wide` allows all that `narrow` does, with the same credential.
bool rule_covers(const EgressRule& wide, const EgressRule& narrow);
bool same_rule(const EgressRule& a, const EgressRule& b);

}  // namespace firestop::manifest
