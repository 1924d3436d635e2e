// What was granted, what of it was used, and what never: so that the next drawing can be smaller.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "base/units.h"
#include "report/report_parts.h"

namespace firestop::report::parts {
namespace {

using codec::Json;

constexpr std::string_view kWorkspace = "/workspace/";

const codec::JsonArray& array_of(const Json& plan, std::string_view key) {
  static const codec::JsonArray kEmpty;
  const Json* list = plan.find(key);
  return list && list->as_array() ? *list->as_array() : kEmpty;
}

std::string words(const Json* list, const char* between) {
  std::string out;
  if (const codec::JsonArray* array = list ? list->as_array() : nullptr)
    for (const auto& one : *array) {
      const std::string word = one.as_int() ? std::to_string(*one.as_int()) : evidence::bytes_of(one);
      out += (out.empty() ? "" : between) + word;
    }
  return out;
}

struct RuleUse {
  uint64_t uses = 0, bytes = 0;
  std::set<std::string> methods;
  bool fetched = false, pushed = false;
  size_t process = story::kNone;
};

// By the name that crossings have for the rule.
std::map<std::string, RuleUse> uses_of_rules(const story::Story& story) {
  std::map<std::string, RuleUse> out;
  for (const auto& event : story.network) {
    // "failed" was let out, too: what went wrong lies behind the rules.
    if (event.data.string_or("verdict", "") == "denied" || event.kind == "name") continue;
    const std::string rule = event.data.string_or("rule", "");
    if (rule.empty()) continue;
    RuleUse& use = out[rule];
    if (use.uses++ == 0) use.process = event.process;
    for (const char* key : {"bytes_out", "bytes_in"})
      use.bytes += static_cast<uint64_t>(std::max<int64_t>(0, event.data.int_or(key, 0)));
    use.methods.insert(event.data.string_or("method", ""));
    const std::string path = event.data.string_or("path", "");
    use.pushed = use.pushed || path.ends_with("/git-receive-pack");
    use.fetched = use.fetched || path.ends_with("/git-upload-pack") || path.ends_with("/info/refs");
  }
  return out;
}

std::string rule_text(const Json& rule) {
  std::string out = rule.string_or("host", rule.string_or("cidr", "?"));
  if (const std::string ports = words(rule.find("ports"), ","); !ports.empty()) out += ":" + ports;
  if (const Json* git = rule.find("git")) out += ", git " + git->string_or("repository", "");
  if (const std::string methods = words(rule.find("methods"), ", "); !methods.empty()) out += ", " + methods;
  if (const std::string paths = words(rule.find("paths"), " "); !paths.empty()) out += " on " + paths;
  return out;
}

class Maker {
 public:
  Maker(const story::Story& story, const Times& times) : story_(story), times_(times) {}

  Grants make() {
    grants_.unused = {"unused", "Granted, and never used", "", Tone::kWarn, {}};
    grants_.unused.table.columns = {{"Grant"}, {"What it allows"}};
    grants_.used = {"used", "Granted, and used", "", Tone::kPlain, {}};
    grants_.used.table.columns = {{"Grant"}, {"What it allows"}, {"Uses", true}, {"First by"}};
    rules();
    credentials();
    capabilities();
    limits();
    if (story_.plan.is_null())
      grants_.unused.lead = "The record does not say what was granted.";
    else if (grants_.unused.table.rows.empty())
      grants_.unused.lead = "All that is told apart here was used.";
    else
      grants_.unused.lead = "Leave these out, and this run would have gone the same way.";
    if (grants_.unused.table.rows.empty()) grants_.unused.tone = Tone::kPlain;
    if (!unknown_.empty()) grants_.unused.lead += " Not known: " + unknown_ + ".";
    for (auto* section : {&grants_.unused, &grants_.used})
      if (section->table.rows.size() > kMostReportRows) {
        section->table.more = "and " + std::to_string(section->table.rows.size() - kMostReportRows) + " more";
        section->table.rows.resize(kMostReportRows);
      }
    return std::move(grants_);
  }

 private:
  void unused(const std::string& grant, const std::string& what) {
    grants_.unused.table.rows.push_back({code(grant), plain(clean(what))});
  }
  void used(const std::string& grant, const std::string& what, uint64_t uses, size_t process) {
    grants_.used.table.rows.push_back({code(grant), plain(clean(what)),
                                       uses > 0 ? number(uses) : plain("yes"),
                                       plain(process_name(story_, process))});
  }
  void unknown(const std::string& what) { unknown_ += (unknown_.empty() ? "" : ", ") + what; }

  void rules() {
    const auto uses = uses_of_rules(story_);
    const auto& list = array_of(story_.plan, "egress");
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string name = list[i].string_or("name", "egress[" + std::to_string(i) + "]");
      const auto found = uses.find(name);
      if (found == uses.end()) {
        unused(name, rule_text(list[i]));
        continue;
      }
      used(name, rule_text(list[i]), found->second.uses, found->second.process);
      parts_of_rule(name, list[i], found->second);
    }
  }

  // Of a rule that was used: methods, and for git the ways, that never were.
  void parts_of_rule(const std::string& name, const Json& rule, const RuleUse& use) {
    if (const Json* git = rule.find("git")) {
      if (git->bool_or("fetch", false) && !use.fetched)
        unused(name + ".git.fetch", "fetch " + git->string_or("repository", ""));
      if (const std::string refs = words(git->find("push"), " "); !refs.empty() && !use.pushed)
        unused(name + ".git.push", "push to " + refs);
      return;
    }
    for (const auto& method : array_of(rule, "methods"))
      if (const std::string word = evidence::bytes_of(method);
          !use.methods.contains(word) && !(word == "GET" && use.methods.contains("HEAD")))
        unused(name + ".methods", word + " on " + rule.string_or("host", ""));
  }

  void credentials() {
    std::map<std::string, std::pair<uint64_t, size_t>> uses;
    for (const auto& event : story_.network) {
      const std::string name = event.data.string_or("credential", "");
      if (name.empty() || event.kind == "alarm" || event.data.string_or("verdict", "") == "denied") continue;
      auto& [count, process] = uses.try_emplace(name, 0, story::kNone).first->second;
      if (count++ == 0) process = event.process;
    }
    for (const auto& credential : array_of(story_.plan, "credentials")) {
      const std::string name = evidence::bytes_of(credential);
      if (const auto found = uses.find(name); found != uses.end())
        used("credentials." + name, "its value in requests of its rules", found->second.first,
             found->second.second);
      else
        unused("credentials." + name, "its value in requests of its rules");
    }
  }

  // Whether the collector of that name worked to the end, so that "not seen" means "not done".
  bool watched(const char* collector) const {
    const auto about = [collector](const std::string& text) { return text.starts_with(collector); };
    return story_.collectors_done &&
           std::find(story_.working.begin(), story_.working.end(), collector) != story_.working.end() &&
           std::none_of(story_.missing.begin(), story_.missing.end(), about) &&
           !story_.lost.contains(collector);
  }

  std::optional<size_t> first_change(std::string_view below) const {
    for (const auto& change : story_.changes)
      if (change.path.starts_with(below)) return change.process;
    return std::nullopt;
  }

  void capabilities() {
    for (const auto& each : array_of(story_.plan, "capabilities")) {
      const std::string name = evidence::bytes_of(each);
      if (name == "shell") {
        shell();
      } else if (name == "filesystem" || name == "memory") {
        const bool memory = name == "memory";
        const auto by = first_change(memory ? "/workspace/.memory/" : kWorkspace);
        const char* what = memory ? "writes to what the next run is given" : "writes to the workspace";
        if (by)
          used("capabilities." + name, what, 0, *by);
        else if (watched("files"))
          unused("capabilities." + name, what);
        else
          unknown(name);
      } else if (name == "skills" && ran_below("/workspace/.skills/")) {
        used("capabilities." + name, "skills; one of them ran", 0, story::kNone);
      } else {
        unknown(name);
      }
    }
    if (!story_.plan.is_null()) unknown("which files were read");
  }

  bool ran_below(std::string_view folder) const {
    return std::any_of(story_.scripts.begin(), story_.scripts.end(),
                       [folder](const story::Script& script) { return script.path.starts_with(folder); });
  }

  // The command itself needs no shell: what counts is whatever else was executed.
  void shell() {
    uint64_t uses = 0;
    size_t first = story::kNone;
    for (size_t i = 0; i < story_.processes.size(); ++i) {
      const story::Process& process = story_.processes[i];
      const size_t own = process.parent == story::kNone && i == 0 ? 1 : 0;
      if (process.execs.size() <= own) continue;
      uses += process.execs.size() - own;
      if (first == story::kNone) first = i;
    }
    if (uses > 0)
      used("capabilities.shell", "programs other than the command", uses, first);
    else if (watched("processes"))
      unused("capabilities.shell", "programs other than the command");
    else
      unknown("shell");
  }

  void limits() {
    grants_.limits = {"limits", "Limits", "", Tone::kPlain, {}};
    grants_.limits.table.columns = {{"Limit"}, {"Allowed", true}, {"Reached", true}, {"Kept by"}};
    for (const auto& cap : story_.caps) {
      const std::string name = cap.string_or("name", ""), limit = cap.string_or("limit", "");
      if (limit.empty()) continue;
      grants_.limits.table.rows.push_back({code(name), plain(clean(limit, 40)), reached(name, limit),
                                           plain(clean(words(cap.find("kept_by"), ", ")))});
    }
    grants_.limits.lead = grants_.limits.table.rows.empty()
                              ? "The record has no limits: the machine was never up."
                              : "What was reached is a claim of the guest where it counts processes or "
                                "memory; '-' is not measured.";
  }

  ReportCell share(double part, const std::string& text) const {
    char percent[32];
    (void)std::snprintf(percent, sizeof percent, " (%.0f %%)", std::min(part * 100, 999.0));
    return plain(text + percent, part >= 0.9 ? Tone::kBad : part < 0.25 ? Tone::kDim : Tone::kPlain);
  }

  ReportCell reached(const std::string& name, const std::string& limit) const {
    if (name == "rating") {
      const auto most = parse_duration(limit);
      const int64_t took_us = times_.to_us - times_.from_us;
      if (!most || most->count() == 0) return plain("-");
      return share(static_cast<double>(took_us) / 1000 / static_cast<double>(most->count()),
                   duration(took_us));
    }
    if (name == "processes" && watched("processes")) {
      const size_t peak = peak_processes(story_);
      const double most = std::strtod(limit.c_str(), nullptr);
      return most > 0 ? share(static_cast<double>(peak) / most, std::to_string(peak)) : plain("-");
    }
    if (name == "memory" && watched("costs")) {
      uint64_t most_kib = 0;
      for (const auto& process : story_.processes) most_kib = std::max(most_kib, process.max_rss_kib);
      const auto most = parse_bytes(limit);
      const uint64_t bytes = std::min<uint64_t>(most_kib, 1ull << 50) * 1024;
      return most && *most > 0 ? share(static_cast<double>(bytes) / static_cast<double>(*most),
                                       "largest process " + format_bytes(bytes))
                               : plain("-");
    }
    if (name == "network.bytes") {
      uint64_t sum = 0;
      for (const auto& event : story_.network)
        for (const char* key : {"bytes_out", "bytes_in"})
          sum += static_cast<uint64_t>(std::max<int64_t>(0, event.data.int_or(key, 0)));
      const auto most = parse_bytes(limit);
      return most && *most > 0
                 ? share(static_cast<double>(sum) / static_cast<double>(*most), format_bytes(sum))
                 : plain("-");
    }
    return plain("-", Tone::kDim);
  }

  const story::Story& story_;
  const Times& times_;
  Grants grants_;
  std::string unknown_;
};

}  // namespace

Grants grants(const story::Story& story, const Times& times) {
  return Maker(story, times).make();
}

}  // namespace firestop::report::parts
