#include "manifest/drawing_model.h"

#include <algorithm>

#include "base/units.h"
#include "manifest/explain_facts.h"
#include "manifest/words.h"

namespace firestop::manifest {
namespace {

// Whether it is about the crossing as a whole, and not about one of its fields.
bool is_whole(const Change& change) {
  const auto rest = change.crossing.substr(std::min(change.crossing.find(' ') + 1, change.crossing.size()));
  return change.before.empty() != change.after.empty() &&
         (change.field.ends_with("]") || change.field == one_line("workspace.entries." + rest) ||
          change.field == "skills." + rest || change.field == "capabilities." + rest);
}

enum class Way { kIn, kOut, kBoth };

// Whether a change of an entry's field is one of its way in or of its way out.
bool concerns(const Change& change, Way way) {
  const bool out = change.field.ends_with(".output") || change.field.ends_with(".max");
  return way == Way::kBoth || (way == Way::kOut) == out;
}

Mark mark_of_crossing(const std::vector<Change>& changes, const std::string& crossing, bool there, Way way) {
  Mark out = Mark::kNone;
  for (const auto& change : changes) {  // what opens comes first
    if (change.crossing != crossing) continue;
    if (is_whole(change)) {
      if (there && !change.after.empty()) return Mark::kNew;
      if (!there && !change.before.empty()) return Mark::kGone;
      continue;
    }
    if (out != Mark::kNone || !there || !concerns(change, way)) continue;
    out = change.effect == Effect::kOpens    ? Mark::kWider
          : change.effect == Effect::kCloses ? Mark::kNarrower
                                             : Mark::kChanged;
  }
  return out;
}

Crossing entry_in(const Entry& entry) {
  Crossing out{entry.path, entry_words(entry), {}, Seal::kCopy, Mark::kNone};
  switch (entry.type) {
    case EntryType::kGitRepo:
      out.seal_words = entry.host.empty() ? "copied objects, no hooks, no settings"
                                          : "fetched by the host before the start";
      break;
    case EntryType::kFile:
      out.seal_words = "its bytes are in the manifest";
      break;
    case EntryType::kMount:
      out.seal = Seal::kReadOnly;
      out.seal_words = "read-only, in nothing that comes back";
      break;
    case EntryType::kDir:
    case EntryType::kLocalFile:
    case EntryType::kLocalDir:
      out.seal_words = "copied once, before the start";
      break;
  }
  return out;
}

bool comes_in(const Entry& entry) {
  return entry.type != EntryType::kDir;
}
bool comes_back(const Manifest& manifest, const Entry& entry) {
  return entry.output ||
         (entry.type == EntryType::kGitRepo && entry.host.empty() && manifest.kind == Kind::kRun);
}

Crossing entry_out(const Entry& entry) {
  if (entry.output)
    return {entry.path, "to firestop-out/NAME/", "at most " + format_bytes(entry.max_bytes), Seal::kCapped,
            Mark::kNone};
  return {"agent/NAME", "new branch of " + (entry.repo == "." ? "this repository" : one_line(entry.repo)),
          "every object checked; your checkout stays", Seal::kChecked, Mark::kNone};
}

Crossing skill_in(const Skill& skill) {
  return {std::string(kSkillsPath) + "/" + skill.name, "skill, image of " + source_words(skill.source),
          "read-only, in nothing that comes back", Seal::kReadOnly, Mark::kNone};
}

// What is kept crosses twice: out after one run, in before the next.
Crossing memory_in(const Manifest& manifest) {
  return {kMemoryPath, "what the last run named " + manifest.name + " kept", "an image of checked files",
          Seal::kCopy, Mark::kNone};
}
Crossing memory_out(const Manifest& manifest) {
  return {kMemoryPath, "kept for the next run named " + manifest.name, memory_cap_words(manifest.limits),
          Seal::kCapped, Mark::kNone};
}
bool keeps(const Manifest& manifest) {
  return manifest.capabilities.contains(Capability::kMemory);
}

// Its way out is wider with a wider cap, too.
Mark mark_of_memory(const std::vector<Change>& changes, bool there, Way way) {
  const Mark whole = mark_of_crossing(changes, "capability memory", there, Way::kBoth);
  if (whole != Mark::kNone || way == Way::kIn || !there) return whole;
  const Mark bytes = mark_of(changes, "limits.memory_directory");
  const Mark files = mark_of(changes, "limits.memory_files");
  return bytes == Mark::kWider || files == Mark::kNone ? bytes : files;
}

// Methods and paths are what a reviewer must see, so that they get more than one line.
constexpr size_t kLinesOfRule = 4;

Crossing rule_out(const EgressRule& rule) {
  return {destination_words(rule),
          request_words(rule),
          rule.credential.empty() ? "no credential" : "with credential " + rule.credential,
          Seal::kFiltered,
          Mark::kNone,
          kLinesOfRule};
}

}  // namespace

Mark mark_of(const std::vector<Change>& changes, const std::string& crossing) {
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [&](const Change& change) { return change.crossing == crossing; });
  if (found == changes.end()) return Mark::kNone;
  return found->effect == Effect::kOpens    ? Mark::kWider
         : found->effect == Effect::kCloses ? Mark::kNarrower
                                            : Mark::kChanged;
}

Crossings crossings_of(const Manifest& manifest, const Manifest* before, const std::vector<Change>& changes) {
  Crossings out;
  const auto add = [](std::vector<Crossing>& side, Crossing crossing, Mark what) {
    crossing.mark = what;
    side.push_back(std::move(crossing));
  };
  const auto comes_back_of = [](const Manifest* from, const Entry& entry) {
    return from && std::any_of(from->entries.begin(), from->entries.end(), [&](const Entry& other) {
             return other.path == entry.path && other.type == entry.type && comes_back(*from, other);
           });
  };
  const auto mark = [&](const Entry& entry, bool there, Way way) {
    return mark_of_crossing(changes, "entry " + entry.path, there, way);
  };
  for (const auto& entry : manifest.entries) {
    if (comes_in(entry)) add(out.in, entry_in(entry), mark(entry, true, Way::kIn));
    if (!comes_back(manifest, entry)) continue;
    const bool fresh = before && !comes_back_of(before, entry);
    add(out.out, entry_out(entry), fresh ? Mark::kNew : mark(entry, true, Way::kOut));
  }
  for (const auto& skill : manifest.skills)
    add(out.in, skill_in(skill), mark_of_crossing(changes, "skill " + skill.name, true, Way::kBoth));
  if (keeps(manifest)) {
    add(out.in, memory_in(manifest), mark_of_memory(changes, true, Way::kIn));
    add(out.out, memory_out(manifest), mark_of_memory(changes, true, Way::kOut));
  }
  if (before) {
    for (const auto& skill : before->skills)
      if (mark_of_crossing(changes, "skill " + skill.name, false, Way::kBoth) == Mark::kGone)
        add(out.in, skill_in(skill), Mark::kGone);
    if (keeps(*before) && !keeps(manifest)) {
      add(out.in, memory_in(*before), Mark::kGone);
      add(out.out, memory_out(*before), Mark::kGone);
    }
    for (const auto& entry : before->entries) {
      if (comes_in(entry) && mark(entry, false, Way::kIn) == Mark::kGone)
        add(out.in, entry_in(entry), Mark::kGone);
      if (comes_back(*before, entry) && !comes_back_of(&manifest, entry))
        add(out.out, entry_out(entry), Mark::kGone);
    }
  }
  add(out.out,
      {"stdout, stderr", "of the command, as it prints them",
       "at most " + format_bytes(manifest.limits.output), Seal::kCapped, Mark::kNone},
      mark_of(changes, "limits.output"));
  add(out.out, {"exit status", "the command's own", "one number", Seal::kCapped, Mark::kNone}, Mark::kNone);
  for (size_t at = 0; at < manifest.egress.size(); ++at)
    add(out.talk, rule_out(manifest.egress[at]),
        mark_of_crossing(changes, "rule " + std::to_string(at), true, Way::kBoth));
  if (before)
    for (size_t at = 0; at < before->egress.size(); ++at)
      if (mark_of_crossing(changes, "old rule " + std::to_string(at), false, Way::kBoth) == Mark::kGone)
        add(out.talk, rule_out(before->egress[at]), Mark::kGone);
  return out;
}

void group_beyond(std::vector<Crossing>& crossings, size_t most) {
  if (crossings.size() <= most) return;
  const auto rank = [](const Crossing& crossing) {
    if (crossing.mark == Mark::kNone) return 2;
    return std::string_view(effect_class(crossing.mark)) == "opens" ? 0 : 1;
  };
  std::stable_sort(crossings.begin(), crossings.end(),
                   [&](const Crossing& a, const Crossing& b) { return rank(a) < rank(b); });
  const size_t more = crossings.size() - (most - 1);
  Crossing last{"and " + std::to_string(more) + " more", "`firestop explain` lists them", "", Seal::kCopy,
                Mark::kNone};
  last.seal = crossings[most - 1].seal;
  for (size_t at = most - 1; at < crossings.size(); ++at)
    if (last.mark == Mark::kNone) last.mark = crossings[at].mark;
  crossings.resize(most - 1);
  crossings.push_back(std::move(last));
}

const char* effect_class(Mark mark) {
  switch (mark) {
    case Mark::kNone:
      return "";
    case Mark::kNew:
    case Mark::kWider:
      return "opens";
    case Mark::kNarrower:
    case Mark::kGone:
      return "closes";
    case Mark::kChanged:
      return "changes";
  }
  return "";
}

const char* label_of(Mark mark) {
  switch (mark) {
    case Mark::kNone:
      return "";
    case Mark::kNew:
      return "NEW";
    case Mark::kWider:
      return "WIDER";
    case Mark::kNarrower:
      return "NARROWER";
    case Mark::kGone:
      return "GONE";
    case Mark::kChanged:
      return "CHANGED";
  }
  return "";
}

}  // namespace firestop::manifest
