// What runs used of what their manifest grants, and what they tried beyond it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "story/story.h"

namespace firestop::report {

inline constexpr size_t kMostUsedPaths = 10000;  // of a rule; beyond it the rule's paths stay as they are

struct RuleUse {
  uint64_t times = 0;
  std::set<std::string> hosts, methods, paths;
  std::set<std::string> credentials;
  bool odd_path = false;  // one that no pattern can be made of, or too many
};

// Which verb needed which crossing that was denied, how often.
struct EscapeHatch {
  std::string verb;      // "npm install"; "" where the guest did not tell
  std::string crossing;  // "GET https://registry.example.com/a", "name x.example.com", "run /usr/bin/gdb"
  std::string code;      // "egress.no_rule", "exec"
  uint64_t times = 0;
};

struct Usage {
  std::map<std::string, RuleUse> rules;  // by "egress[2]"
  std::set<std::string> credentials;
  bool other_programs = false;  // than the declared command's first one
  bool workspace_written = false;
  uint64_t processes = 0, connections = 0;  // most at one time
  uint64_t network_bytes = 0;               // of what crossed, both ways, of the run that had most
  std::chrono::milliseconds duration{0};    // of the longest run
  bool complete = true;                     // nothing that the guest saw was lost in any run
  std::set<std::string> cut_short;          // reasons for which Firestop ended a run
  std::vector<EscapeHatch> hatches;         // most times first
  size_t runs = 0;
};

Usage usage_of(const std::vector<story::Story>& stories, const manifest::Manifest& manifest);

}  // namespace firestop::report
