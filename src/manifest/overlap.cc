#include "manifest/overlap.h"

#include <algorithm>

#include "manifest/cover.h"

namespace firestop::manifest {
namespace {

bool ports_meet(const EgressRule& a, const EgressRule& b) {
  return std::any_of(a.ports.begin(), a.ports.end(), [&](uint16_t port) {
    return std::find(b.ports.begin(), b.ports.end(), port) != b.ports.end();
  });
}

bool methods_meet(const EgressRule& a, const EgressRule& b) {
  if (a.methods.empty() || b.methods.empty()) return true;
  return std::any_of(a.methods.begin(), a.methods.end(), [&](const std::string& method) {
    return std::any_of(b.methods.begin(), b.methods.end(), [&](const std::string& other) {
      const bool read = method == "GET" || method == "HEAD";
      return method == other || (read && (other == "GET" || other == "HEAD"));
    });
  });
}

bool paths_meet(const EgressRule& a, const EgressRule& b) {
  if (a.git && b.git) return a.git->repository == b.git->repository;
  if (a.git || b.git) return false;  // the rule of git is asked first, for its own repository's paths
  if (a.paths.empty() || b.paths.empty()) return true;
  return std::any_of(a.paths.begin(), a.paths.end(), [&](const std::string& path) {
    return std::any_of(b.paths.begin(), b.paths.end(),
                       [&](const std::string& other) { return patterns_meet(path, other); });
  });
}

// What is wrong with having both; `first` stands before `second`.
std::string why_not_both(const EgressRule& first, const EgressRule& second, const std::string& name) {
  if (!hosts_meet(first.host, second.host) || !ports_meet(first, second)) return {};
  if (first.protocol != second.protocol)
    return "is " + second.protocol + " to a host and port that are " + first.protocol + " by " + name;
  if (first.protocol == "http" && methods_meet(first, second) && paths_meet(first, second) &&
      !first.credential.empty() && !second.credential.empty() && first.credential != second.credential)
    return "gives requests credential " + second.credential + " that get " + first.credential + " by " + name;
  if (first.protocol == "http" && methods_meet(first, second) && paths_meet(first, second) &&
      first.credential == second.credential && first.placeholders_in_body != second.placeholders_in_body)
    return "says another thing about placeholders in bodies of requests than " + name;
  // Presets say what they say; that a rule beside them says it too is no mistake.
  if (!first.preset.empty() || !second.preset.empty()) return {};
  if (same_rule(first, second)) return "says again what " + name + " says";
  if (rule_covers(first, second))
    return "allows nothing that " + name + " does not allow, and so restricts nothing";
  if (rule_covers(second, first)) return "allows all that " + name + " does, which so restricts nothing";
  return {};
}

}  // namespace

void check_overlaps(Loading& loading) {
  const auto& rules = loading.manifest.egress;
  for (size_t later = 1; later < rules.size(); ++later) {
    if (rules[later].host.empty()) continue;
    for (size_t at = 0; at < later; ++at) {
      if (rules[at].host.empty()) continue;
      const auto why = why_not_both(rules[at], rules[later], rules[at].name);
      if (why.empty()) continue;
      loading.reader.fault(rules[later].where, rules[later].name, why,
                           "expected rules of which each request fits one, or fits both alike");
      break;
    }
  }
}

}  // namespace firestop::manifest
