#include "report/suggest.h"

#include <algorithm>

#include "base/units.h"
#include "manifest/cover.h"
#include "manifest/diff.h"
#include "manifest/load.h"
#include "report/manifest_text.h"
#include "report/path_patterns.h"

namespace firestop::report {
namespace {

using manifest::EgressRule;
using manifest::Manifest;

constexpr uint64_t kHeadroom = 2;  // times what was used
constexpr uint64_t kLeastProcesses = 16, kLeastConnections = 8;
constexpr uint64_t kByteHeadroom = 4;  // a request's framing and TLS are bytes, too
constexpr uint64_t kLeastBytes = 1u << 20;
constexpr std::chrono::minutes kLeastRating{1};

std::string times_text(uint64_t times, const char* what) {
  return std::to_string(times) + " " + what + (times == 1 ? "" : "s");
}

std::string list_text(const std::vector<std::string>& items) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

class Suggester {
 public:
  Suggester(const std::vector<story::Story>& stories, std::string_view text, const std::string& name)
      : stories_(stories), name_(name), edited_(text) {
    out_.before = text;
  }

  Result<Suggestion> run() {
    auto loaded = manifest::load_text(name_, out_.before);
    if (!loaded.faults.empty())
      return fail("manifest.invalid", "the manifest of the run is not right: " + loaded.faults[0].headline());
    now_ = std::move(loaded.manifest);
    usage_ = usage_of(stories_, now_);
    rules();
    credentials();
    capabilities();
    caps();
    out_.after = edited_.text();
    out_.diff = edited_.diff(name_, name_ + " (suggested)");
    out_.hatches = std::move(usage_.hatches);
    out_.runs = usage_.runs;
    return std::move(out_);
  }

 private:
  using Edit = std::function<bool(ManifestText&)>;
  using Check = std::function<bool(const Manifest&)>;

  // Takes the edit only if the result loads, says what was meant, and opens nothing.
  bool attempt(const Edit& edit, const Check& check) {
    ManifestText text = edited_;
    if (!edit(text)) return false;
    auto loaded = manifest::load_text(name_, text.text());
    if (!loaded.faults.empty() || !check(loaded.manifest)) return false;
    for (const auto& change : manifest::diff(now_, loaded.manifest))
      if (change.effect == manifest::Effect::kOpens) return false;
    edited_ = std::move(text);
    now_ = std::move(loaded.manifest);
    return true;
  }

  bool step(std::string field, std::string change, std::string reason, const Edit& edit, const Check& check) {
    const bool done = attempt(edit, check);
    out_.steps.push_back({std::move(field), std::move(change), std::move(reason), done});
    return done;
  }

  // ---- egress

  // Rules as the runs had them, from the last to the first, so that the numbers of those before stay.
  void rules() {
    std::vector<EgressRule> before = now_.egress;
    for (size_t i = before.size(); i-- > 0;) {
      const EgressRule& rule = before[i];
      if (!rule.preset.empty()) {
        preset(before, i);
        continue;
      }
      const auto used = usage_.rules.find(rule.name);
      if (used == usage_.rules.end())
        remove_rule(rule.name, destination(rule), rule.where.line, rule.credential);
      else
        narrow(rule, used->second);
    }
  }

  static std::string destination(const EgressRule& rule) { return rule.host.empty() ? rule.cidr : rule.host; }

  // A preset is one item of the text and several rules; it goes when none of them was used.
  void preset(const std::vector<EgressRule>& all, size_t i) {
    const std::string item = all[i].name.substr(0, all[i].name.find(']') + 1);
    if (i > 0 && all[i - 1].name.starts_with(item + ".")) return;  // its first rule speaks for it
    const bool used = std::any_of(usage_.rules.begin(), usage_.rules.end(),
                                  [&item](const auto& each) { return each.first.starts_with(item + "."); });
    if (!used) remove_rule(item, "preset " + all[i].preset, all[i].where.line, all[i].credential);
  }

  // With its credential, if no other rule has that: one that nothing refers to is a fault.
  void remove_rule(const std::string& item, const std::string& what, size_t line,
                   const std::string& credential) {
    const bool orphan =
        !credential.empty() &&
        std::none_of(now_.egress.begin(), now_.egress.end(), [&](const EgressRule& each) {
          return each.credential == credential && each.name != item && !each.name.starts_with(item + ".");
        });
    const size_t expected = static_cast<size_t>(std::count_if(
        now_.egress.begin(), now_.egress.end(),
        [&item](const EgressRule& each) { return each.name != item && !each.name.starts_with(item + "."); }));
    step(
        item, "gone (" + what + (orphan ? ", with credential " + credential : "") + ")",
        "nothing crossed by it in " + times_text(usage_.runs, "run"),
        [&](ManifestText& text) {
          const auto section = text.top_level("egress");
          if (!section) return false;
          // From the bottom up, so that the lines above keep their numbers.
          const auto keys = text.top_level("credentials");
          const bool below = keys && keys->from > section->from;
          if (orphan && below && !remove_credential(text, credential)) return false;
          const auto block = expected == 0 ? section : text.block_at(line - 1);  // without a rule, no network
          if (!block || (expected > 0 && !starts_rule(text, *block))) return false;
          text.remove(*block);
          return !orphan || below || remove_credential(text, credential);
        },
        [expected](const Manifest& now) { return now.egress.size() == expected; });
  }

  static bool starts_rule(const ManifestText& text, const ManifestText::Block& block) {
    const std::string whole = text.text();
    size_t at = 0;
    for (size_t line = 0; line < block.from; ++line) at = whole.find('\n', at) + 1;
    const size_t begin = whole.find_first_not_of(' ', at);
    return begin != std::string::npos && whole.compare(begin, 2, "- ") == 0;
  }

  void narrow(const EgressRule& rule, const RuleUse& use) {
    narrow_host(rule, use);
    if (rule.git) {
      narrow_git(rule, use);
      return;
    }
    if (rule.protocol != "http" || use.methods.empty()) return;
    std::vector<std::string> methods;
    for (const auto& method : use.methods) {
      const bool follows = method == "HEAD" && !rule.methods.empty() && !has(rule.methods, "HEAD");
      if (const std::string name = follows ? "GET" : method; !has(methods, name)) methods.push_back(name);
    }
    if (rule.methods.empty() || methods.size() < rule.methods.size())
      set_list(rule, "methods", methods, times_text(use.times, "request") + " used no other",
               [](const EgressRule& now) { return now.methods; });
    if (use.odd_path) {
      out_.notes.push_back(rule.name +
                           ".paths: not judged, since a path that was asked for is in no pattern, or "
                           "there are too many");
      return;
    }
    const auto patterns = path_patterns(use.paths, rule.paths);
    const bool same = patterns.size() == rule.paths.size() &&
                      std::all_of(patterns.begin(), patterns.end(),
                                  [&rule](const std::string& each) { return has(rule.paths, each); });
    if (patterns.empty() || same) return;
    set_list(rule, "paths", patterns,
             times_text(use.times, "request") + " went to " + times_text(use.paths.size(), "path"),
             [](const EgressRule& now) { return now.paths; });
  }

  static bool has(const std::vector<std::string>& list, const std::string& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  }

  void set_list(const EgressRule& rule, const char* key, const std::vector<std::string>& values,
                const std::string& reason, std::vector<std::string> (*of)(const EgressRule&)) {
    step(
        rule.name + "." + key, "only " + list_text(values), reason,
        [&](ManifestText& text) {
          const auto block = text.block_at(rule.where.line - 1);
          return block && starts_rule(text, *block) && text.set_member(*block, key, yaml_list(values));
        },
        [&](const Manifest& now) {
          const EgressRule* found = find(now, rule.name);
          return found && of(*found) == values;
        });
  }

  static const EgressRule* find(const Manifest& manifest, const std::string& name) {
    for (const EgressRule& rule : manifest.egress)
      if (rule.name == name) return &rule;
    return nullptr;
  }

  void narrow_host(const EgressRule& rule, const RuleUse& use) {
    if (!rule.host.starts_with('*') || use.hosts.size() != 1) return;
    const std::string host = *use.hosts.begin();
    step(
        rule.name + ".host", "only " + host, "no other host of " + rule.host + " was asked",
        [&](ManifestText& text) {
          const auto block = text.block_at(rule.where.line - 1);
          return block && starts_rule(text, *block) && text.replace_value(*block, "host", host);
        },
        [&](const Manifest& now) {
          const EgressRule* found = find(now, rule.name);
          return found && found->host == host;
        });
  }

  void narrow_git(const EgressRule& rule, const RuleUse& use) {
    const bool pushed = std::any_of(use.paths.begin(), use.paths.end(), [](const std::string& path) {
      return path.ends_with("/git-receive-pack");
    });
    if (!rule.git || rule.git->push.empty() || pushed || use.odd_path || !rule.git->fetch) return;
    const std::string value = "{repository: " + yaml_text(rule.git->repository) + ", fetch: true}";
    step(
        rule.name + ".git.push", "gone", "nothing was pushed",
        [&](ManifestText& text) {
          const auto block = text.block_at(rule.where.line - 1);
          return block && starts_rule(text, *block) && text.set_member(*block, "git", value);
        },
        [&](const Manifest& now) {
          const EgressRule* found = find(now, rule.name);
          return found && found->git && found->git->fetch && found->git->push.empty();
        });
  }

  // ---- credentials

  void credentials() {
    for (size_t i = now_.credentials.size(); i-- > 0;) {
      const std::string name = now_.credentials[i].name;
      if (usage_.credentials.contains(name)) continue;
      const size_t left = now_.credentials.size() - 1;
      step(
          "credentials." + name, "gone", "it went into no request",
          [&](ManifestText& text) {
            for (size_t rule = now_.egress.size(); rule-- > 0;)
              if (now_.egress[rule].credential == name && !drop_from_rule(text, now_.egress[rule]))
                return false;
            return remove_credential(text, name);
          },
          [left](const Manifest& now) { return now.credentials.size() == left; });
    }
  }

  bool remove_credential(ManifestText& text, const std::string& name) const {
    const auto section = text.top_level("credentials");
    if (!section) return false;
    if (now_.credentials.size() > 1) return text.remove_member(*section, name);
    text.remove(*section);
    return true;
  }

  static bool drop_from_rule(ManifestText& text, const EgressRule& rule) {
    const auto block = text.block_at(rule.where.line - 1);
    return block && starts_rule(text, *block) && text.remove_member(*block, "credential");
  }

  // ---- capabilities

  void capabilities() {
    using manifest::Capability;
    if (!usage_.complete) {
      out_.notes.push_back(
          "capabilities: not judged, since not everything that the guest did is in the record");
      return;
    }
    if (now_.capabilities.contains(Capability::kShell) && !usage_.other_programs)
      drop_capability(Capability::kShell, "no program but the declared command was executed");
    if (now_.capabilities.contains(Capability::kFilesystem) && !usage_.workspace_written)
      drop_capability(Capability::kFilesystem, "nothing in the workspace but outputs was written");
    for (const auto kept : {Capability::kSkills, Capability::kMemory, Capability::kCompaction})
      if (now_.capabilities.contains(kept))
        out_.notes.push_back(std::string("capabilities.") + manifest::to_string(kept) +
                             ": not judged, since reading leaves no trace");
  }

  void drop_capability(manifest::Capability capability, const std::string& reason) {
    std::vector<std::string> left;
    for (const auto each : now_.capabilities)
      if (each != capability) left.emplace_back(manifest::to_string(each));
    step(
        std::string("capabilities.") + manifest::to_string(capability), "gone", reason,
        [&](ManifestText& text) {
          const auto block = text.top_level("capabilities");
          return block && text.set_member(*block, "capabilities", yaml_list(left));
        },
        [&](const Manifest& now) {
          return now.capabilities.size() == left.size() && !now.capabilities.contains(capability);
        });
  }

  // ---- caps

  void caps() {
    for (const auto& reason : usage_.cut_short)
      if (reason.starts_with("cap.") || reason.starts_with("limit.") || reason.starts_with("rating.")) {
        out_.notes.push_back("limits and rating: not judged, since a run ended with " + reason);
        return;
      }
    rating();
    if (usage_.complete && usage_.processes > 0)
      cap(
          "processes", "", now_.limits.processes, std::max(kLeastProcesses, usage_.processes * kHeadroom),
          std::to_string(usage_.processes) + " at one time", "limits.processes",
          [](uint64_t value) { return std::to_string(value); },
          [](const Manifest& now) -> uint64_t { return now.limits.processes; });
    if (now_.limits.network.connections)
      cap(
          "connections", "network", *now_.limits.network.connections,
          std::max(kLeastConnections, usage_.connections * kHeadroom),
          std::to_string(usage_.connections) + " at one time", "limits.network",
          [](uint64_t value) { return std::to_string(value); },
          [](const Manifest& now) -> uint64_t { return now.limits.network.connections.value_or(0); });
    if (now_.limits.network.bytes)
      cap("bytes", "network", *now_.limits.network.bytes, rounded_bytes(usage_.network_bytes * kByteHeadroom),
          format_bytes(usage_.network_bytes) + " of requests and answers", "limits.network", format_bytes,
          [](const Manifest& now) -> uint64_t { return now.limits.network.bytes.value_or(0); });
    out_.notes.push_back(
        "limits.cpus, memory, disk, io, open_files, output, result: kept, since the record does "
        "not say how much of them was used");
  }

  static uint64_t rounded_bytes(uint64_t bytes) {
    return std::max<uint64_t>(kLeastBytes, (bytes + kLeastBytes - 1) / kLeastBytes * kLeastBytes);
  }

  // Less than half of what is allowed would have done; else it is not worth a line of somebody's review.
  void cap(const char* key, const char* behind, uint64_t allowed, uint64_t enough, const std::string& used,
           const char* declared, std::string (*text_of)(uint64_t), uint64_t (*of)(const Manifest&)) {
    if (enough > allowed / 2) return;
    const std::string field = std::string("limits.") + (*behind ? std::string(behind) + "." : "") + key;
    if (!now_.declared.contains(field) && !now_.declared.contains(declared)) {
      out_.notes.push_back(field + ": the default, " + text_of(allowed) +
                           ", is in force; most used: " + used);
      return;
    }
    step(
        field, text_of(enough), "most used: " + used,
        [&](ManifestText& text) {
          const auto block = text.top_level("limits");
          return block && text.replace_value(*block, key, text_of(enough), behind);
        },
        [&](const Manifest& now) { return of(now) == enough; });
  }

  void rating() {
    using std::chrono::milliseconds;
    if (usage_.duration.count() <= 0) return;
    const auto minutes = std::chrono::ceil<std::chrono::minutes>(usage_.duration * kHeadroom);
    const milliseconds enough = std::max<milliseconds>(kLeastRating, minutes);
    if (enough > now_.rating / 2) return;
    const std::string value = format_duration(enough);
    step(
        "rating", value, "the longest run took " + format_duration(usage_.duration),
        [&](ManifestText& text) {
          if (const auto block = text.top_level("rating")) return text.replace_value(*block, "rating", value);
          const auto name = text.top_level("name");
          if (!name) return false;
          text.insert(name->to, "rating: " + value);
          return true;
        },
        [&](const Manifest& now) { return now.rating == enough; });
  }

  const std::vector<story::Story>& stories_;
  const std::string name_;
  ManifestText edited_;
  Manifest now_;
  Usage usage_;
  Suggestion out_;
};

}  // namespace

Result<Suggestion> suggest(const std::vector<story::Story>& stories, std::string_view text,
                           const std::string& name) {
  return Suggester(stories, text, name).run();
}

codec::Json to_json(const Suggestion& suggestion) {
  codec::JsonArray steps, hatches, notes;
  for (const auto& step : suggestion.steps)
    steps.push_back(codec::JsonObject{
        {"field", step.field}, {"change", step.change}, {"reason", step.reason}, {"in_diff", step.done}});
  for (const auto& hatch : suggestion.hatches)
    hatches.push_back(codec::JsonObject{
        {"verb", hatch.verb}, {"crossing", hatch.crossing}, {"code", hatch.code}, {"times", hatch.times}});
  for (const auto& note : suggestion.notes) notes.push_back(note);
  return codec::JsonObject{{"runs", static_cast<uint64_t>(suggestion.runs)},
                           {"diff", suggestion.diff},
                           {"manifest", suggestion.after},
                           {"steps", std::move(steps)},
                           {"escape_hatches", std::move(hatches)},
                           {"notes", std::move(notes)}};
}

std::string to_text(const Suggestion& suggestion, const std::function<std::string(std::string_view)>& paint) {
  std::string out = suggestion.diff;
  const auto heading = [&](std::string_view text) { out += (out.empty() ? "" : "\n") + paint(text) + "\n"; };
  if (suggestion.steps.empty()) out += "Nothing in the manifest went unused, as far as the record tells.\n";
  if (!suggestion.steps.empty()) heading("Why");
  for (const auto& step : suggestion.steps)
    out += "  " + step.field + ": " + step.change + "\n      " + step.reason +
           (step.done ? "\n" : "\n      not in the diff: the line has to be edited by hand\n");
  if (!suggestion.hatches.empty()) heading("Escape hatches: what was needed and denied");
  for (const auto& hatch : suggestion.hatches)
    out += "  " + (hatch.verb.empty() ? "(not known)" : hatch.verb) + ": " + hatch.crossing + "  " +
           hatch.code + ", " + std::to_string(hatch.times) + (hatch.times == 1 ? " time\n" : " times\n");
  if (!suggestion.notes.empty()) heading("Not judged");
  for (const auto& note : suggestion.notes) out += "  " + note + "\n";
  return out;
}

}  // namespace firestop::report
