#include "manifest/diff.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/units.h"
#include "manifest/canonical.h"
#include "manifest/cover.h"
#include "manifest/diff_egress.h"
#include "manifest/explain_facts.h"
#include "manifest/words.h"

namespace firestop::manifest {
namespace {

int alarm_rank(const std::string& on_alarm) {
  return on_alarm == "kill" ? 2 : on_alarm == "freeze" ? 1 : 0;
}

constexpr const char* kUnjudged = "differs in a way that is not judged here, so it counts as more";
// Members of the signed form, as canonical.cc names them, that the comparisons below have words for.
constexpr std::string_view kJudgedFields[] = {
    "firestop", "kind",    "name",        "description", "rating_ms",    "idle_ms",
    "image",    "entries", "environment", "users",       "groups",       "run_as",
    "command",  "limits",  "egress",      "credentials", "capabilities", "skills"};
constexpr std::string_view kJudgedOfEntries[] = {
    "type",        "repo",        "host",   "ref",       "depth",       "content", "content_base64",
    "source_path", "source_bind", "output", "max_bytes", "permissions", "owner",   "group"};

class Differ {
 public:
  Differ(const Manifest& before, const Manifest& after) : before_(before), after_(after) {}

  std::vector<Change> run() {
    compare_identity();
    compare_entries();
    compare_skills();
    auto rules = diff_egress(before_, after_);
    std::move(rules.begin(), rules.end(), std::back_inserter(changes_));
    compare_credentials();
    compare_capabilities();
    compare_caps();
    compare_inside();
    notice_the_rest();
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.effect < b.effect; });
    return std::move(changes_);
  }

 private:
  void add(Effect effect, const std::string& field, const std::string& before, const std::string& after,
           std::string words, std::string crossing = {}) {
    changes_.push_back(
        {effect, one_line(field), one_line(before), one_line(after), std::move(words), std::move(crossing)});
  }
  void text(const char* field, const std::string& before, const std::string& after, const char* words) {
    if (before != after) add(Effect::kChanges, field, before, after, words);
  }

  void compare_identity() {
    if (before_.kind != after_.kind) {
      const bool verdict = after_.kind == Kind::kVerdict;
      add(verdict ? Effect::kCloses : Effect::kOpens, "kind", verdict ? "run" : "verdict",
          verdict ? "verdict" : "run",
          verdict ? "nothing but a verdict comes back" : "more than a verdict comes back");
    }
    text("name", before_.name, after_.name, "another name, and branch agent/NAME");
    text("description", before_.description, after_.description, "another description");
  }

  void compare_entries() {
    const auto find = [](const Manifest& manifest, const Entry& entry) {
      return std::find_if(manifest.entries.begin(), manifest.entries.end(),
                          [&](const Entry& other) { return other.path == entry.path; });
    };
    for (const auto& entry : after_.entries) {
      const auto old = find(before_, entry);
      if (old == before_.entries.end())
        entry_added(entry);
      else if (old->type != entry.type || (entry.type == EntryType::kGitRepo && old->host != entry.host)) {
        entry_removed(*old);
        entry_added(entry);
      } else {
        compare_entry(*old, entry);
      }
    }
    for (const auto& entry : before_.entries)
      if (find(after_, entry) == after_.entries.end()) entry_removed(entry);
  }

  static bool is_empty_folder(const Entry& entry) { return entry.type == EntryType::kDir && !entry.output; }
  static std::string field_of(const Entry& entry) { return "workspace.entries." + entry.path; }
  static std::string key_of(const Entry& entry) { return "entry " + entry.path; }

  void entry_added(const Entry& entry) {
    std::string words = "comes in";
    if (entry.type == EntryType::kGitRepo)
      words = entry.host.empty() ? "comes in, and changes come back as a branch" : "comes in, from elsewhere";
    if (entry.output) words = "comes back, at most " + format_bytes(entry.max_bytes);
    if (is_empty_folder(entry)) words = "an empty folder";
    add(is_empty_folder(entry) ? Effect::kChanges : Effect::kOpens, field_of(entry), "", entry_words(entry),
        words, key_of(entry));
  }

  void entry_removed(const Entry& entry) {
    add(is_empty_folder(entry) ? Effect::kChanges : Effect::kCloses, field_of(entry), entry_words(entry), "",
        entry.output ? "comes back no more" : "is no longer there", key_of(entry));
  }

  void compare_entry(const Entry& old, const Entry& entry) {
    const auto note = [&](Effect effect, const char* member, const std::string& before,
                          const std::string& after, std::string words) {
      add(effect, field_of(entry) + "." + member, before, after, std::move(words), key_of(entry));
    };
    const auto other = [&](const char* member, const std::string& before, const std::string& after,
                           const char* words) {
      if (before != after) note(Effect::kChanges, member, before, after, words);
    };
    if (old.repo != entry.repo)
      note(Effect::kOpens, "repo", old.repo, entry.repo, "another repository comes in");
    other("ref", old.ref.empty() ? "HEAD" : old.ref, entry.ref.empty() ? "HEAD" : entry.ref,
          "another state of the repository");
    if (old.depth != entry.depth) {
      const auto depth = [](const Entry& e) {
        return e.depth ? std::to_string(*e.depth) + (*e.depth == 1 ? " commit" : " commits") : "whole";
      };
      const bool more = !entry.depth || (old.depth && *entry.depth > *old.depth);
      note(more ? Effect::kOpens : Effect::kCloses, "depth", depth(old), depth(entry),
           more ? "more of the history comes in" : "less of the history comes in");
    }
    if (old.content != entry.content)
      note(Effect::kChanges, "content", format_bytes(old.content.size()), format_bytes(entry.content.size()),
           "another text");
    compare_source(old.source, entry.source, note);
    if (old.output != entry.output) {
      note(entry.output ? Effect::kOpens : Effect::kCloses, "output", old.output ? "true" : "false",
           entry.output ? "true" : "false",
           entry.output ? "comes back, at most " + format_bytes(entry.max_bytes) : "comes back no more");
    } else if (old.max_bytes != entry.max_bytes) {
      const bool more = entry.max_bytes > old.max_bytes;
      note(more ? Effect::kOpens : Effect::kCloses, "max", format_bytes(old.max_bytes),
           format_bytes(entry.max_bytes), more ? "more may come back" : "less may come back");
    }
    const auto mode = [](const Entry& e) {
      char octal[16];
      std::snprintf(octal, sizeof octal, "%04o", e.permissions & 0777u);
      return e.permissions == 0 ? std::string("as its source has them") : std::string(octal);
    };
    other("permissions", mode(old), mode(entry), "inside, who may use it");
    other("owner", old.owner, entry.owner, "inside, whose it is");
    other("group", old.group, entry.group, "inside, whose it is");
  }

  template <typename Note>
  void compare_source(const Source& old, const Source& now, const Note& note) {
    if (old.path == now.path && old.bind == now.bind) return;
    const bool paths = old.bind.empty() && now.bind.empty();
    const bool narrower = paths && folder_covers(old.path, now.path);
    note(narrower ? Effect::kCloses : Effect::kOpens, now.bind.empty() ? "src" : "source.bind",
         source_words(old), source_words(now),
         narrower                                     ? "only a part of it comes in"
         : paths && folder_covers(now.path, old.path) ? "all around it comes in, too"
                                                      : "something else of the host comes in");
  }

  void compare_skills() {
    const auto find = [](const Manifest& manifest, const std::string& name) {
      return std::find_if(manifest.skills.begin(), manifest.skills.end(),
                          [&](const Skill& other) { return other.name == name; });
    };
    const auto words = [](const Skill& skill) { return "skill of " + source_words(skill.source); };
    for (const auto& skill : after_.skills) {
      const std::string field = "skills." + skill.name, crossing = "skill " + skill.name;
      const auto old = find(before_, skill.name);
      if (old == before_.skills.end())
        add(Effect::kOpens, field, "", words(skill), "comes in, read-only", crossing);
      else
        compare_source(old->source, skill.source,
                       [&](Effect effect, const char* member, const std::string& before,
                           const std::string& after, std::string what) {
                         add(effect, field + "." + member, before, after, std::move(what), crossing);
                       });
    }
    for (const auto& skill : before_.skills)
      if (find(after_, skill.name) == after_.skills.end())
        add(Effect::kCloses, "skills." + skill.name, words(skill), "", "is no longer there",
            "skill " + skill.name);
  }

  void compare_credentials() {
    const auto find = [](const Manifest& manifest, const std::string& name) {
      return std::find_if(manifest.credentials.begin(), manifest.credentials.end(),
                          [&](const Credential& other) { return other.name == name; });
    };
    const auto words = [](const Credential& credential) {
      return credential.inject + ", placeholder in $" + credential.env;
    };
    for (const auto& credential : after_.credentials) {
      const std::string field = "credentials." + credential.name;
      const auto old = find(before_, credential.name);
      if (old == before_.credentials.end()) {
        add(Effect::kOpens, field, "", words(credential), "a secret of yours is used for it", field);
        continue;
      }
      const auto other = [&](const char* member, const std::string& before, const std::string& after) {
        if (before != after)
          add(Effect::kChanges, field + "." + member, before, after, "how the secret is put into requests",
              field);
      };
      if (old->env != credential.env)
        add(Effect::kChanges, field + ".env", old->env, credential.env, "where its placeholder is", field);
      other("inject", old->inject, credential.inject);
      other("user", old->user, credential.user);
      other("header", old->header, credential.header);
      other("query", old->query, credential.query);
      other("scheme", old->scheme, credential.scheme);
      other("key_id", old->key_id, credential.key_id);
      other("session_token", old->session_token, credential.session_token);
      if (old->prefix != credential.prefix)
        add(Effect::kChanges, field + ".prefix", old->prefix, credential.prefix,
            "what its placeholder begins with", field);
      if (old->on_alarm != credential.on_alarm)
        add(alarm_rank(credential.on_alarm) < alarm_rank(old->on_alarm) ? Effect::kOpens : Effect::kCloses,
            field + ".on_alarm", old->on_alarm, credential.on_alarm,
            "what follows when its placeholder is about to leave", field);
      if (old->length != credential.length)
        add(Effect::kChanges, field + ".length", std::to_string(old->length),
            std::to_string(credential.length), "how long its placeholder is", field);
    }
    for (const auto& credential : before_.credentials)
      if (find(after_, credential.name) == after_.credentials.end())
        add(Effect::kCloses, "credentials." + credential.name, words(credential), "",
            "the secret is no longer used", "credentials." + credential.name);
  }

  void compare_capabilities() {
    for (const auto capability : kAllCapabilities) {
      const bool had = before_.capabilities.contains(capability),
                 has = after_.capabilities.contains(capability);
      if (had == has) continue;
      const std::string name = to_string(capability);
      add(has ? Effect::kOpens : Effect::kCloses, "capabilities." + name, had ? "granted" : "",
          has ? "granted" : "", std::string(has ? "may " : "may no longer ") + meaning_of(capability),
          "capability " + name);
    }
  }

  void compare_caps() {
    // Some caps are facts of a manifest only with what they cap: both sides are asked as if they had it.
    const auto caps = [](Manifest manifest) {
      if (manifest.egress.empty()) manifest.egress.emplace_back();
      manifest.capabilities.insert(Capability::kMemory);
      return caps_of(manifest);
    };
    const auto old_caps = caps(before_), new_caps = caps(after_);
    for (const auto& cap : new_caps) {
      const auto old = std::find_if(old_caps.begin(), old_caps.end(),
                                    [&](const Cap& other) { return other.field == cap.field; });
      if (old == old_caps.end() || old->value == cap.value) continue;
      const bool more = cap.value.is_null() || (!old->value.is_null() && number(cap) > number(*old));
      const char* words = more ? "more may be used" : "less may be used";
      if (cap.field == "rating") words = more ? "it may run longer" : "it ends earlier";
      if (cap.field == "idle") words = more ? "it may stay idle longer" : "it ends earlier when idle";
      if (cap.field == "limits.output" || cap.field.starts_with("limits.result"))
        words = more ? "more may come back" : "less may come back";
      if (cap.field.starts_with("limits.memory_"))
        words = more ? "more may be kept for the next run" : "less may be kept for the next run";
      add(more ? Effect::kOpens : Effect::kCloses, cap.field, old->text, cap.text, words, cap.field);
    }
  }

  static double number(const Cap& cap) {
    if (const auto* integer = cap.value.as_int()) return static_cast<double>(*integer);
    const auto* real = cap.value.as_double();
    return real ? *real : 0;
  }

  void compare_inside() {
    text("image", image_words(before_.image), image_words(after_.image), "another image");
    text("command", command_words(before_.command), command_words(after_.command), "another command");
    text("run_as", before_.run_as, after_.run_as, "another account, without privileges as ever");
    for (const auto& [name, value] : after_.environment) {
      const auto old = before_.environment.find(name);
      if (old == before_.environment.end())
        add(Effect::kChanges, "workspace.environment." + name, "", "set", "a variable more");
      else if (old->second != value)
        add(Effect::kChanges, "workspace.environment." + name, "set", "set", "another value");
    }
    for (const auto& [name, value] : before_.environment)
      if (!after_.environment.contains(name))
        add(Effect::kChanges, "workspace.environment." + name, "set", "", "a variable less");
    text("workspace.users", accounts(before_), accounts(after_), "other accounts");
    text("workspace.groups", join_words(before_.groups), join_words(after_.groups), "other groups");
  }

  static std::string accounts(const Manifest& manifest) {
    std::string out;
    for (const auto& user : manifest.users)
      out += (out.empty() ? "" : ", ") + user.name +
             (user.groups.empty() ? "" : " (" + join_words(user.groups) + ")");
    return out;
  }

  // What is signed differs, and no comparison above has words for it: that counts as more.
  void notice_the_rest() {
    const auto signed_form = [](const Manifest& manifest) {
      const auto text = canonical_json(manifest, nullptr);
      const auto json = text ? codec::parse_json(*text) : Result<codec::Json>(codec::Json());
      const auto* found = json ? json->find("manifest") : nullptr;
      return found ? *found : codec::Json();
    };
    const auto before = signed_form(before_), after = signed_form(after_);
    unknown_members(before, after, "", kJudgedFields);
    const auto *old_entries = before.find("entries"), *new_entries = after.find("entries");
    for (const auto& entry : after_.entries) {
      const auto* old = old_entries ? old_entries->find(entry.path) : nullptr;
      const auto* now = new_entries ? new_entries->find(entry.path) : nullptr;
      if (old && now) unknown_members(*old, *now, field_of(entry) + ".", kJudgedOfEntries, key_of(entry));
    }
    if (!changes_.empty() || before == after) return;
    if (signed_form(in_one_order(before_)) == signed_form(in_one_order(after_)))
      add(Effect::kChanges, "egress", "", "", "the same rules in another order");
    else
      add(Effect::kOpens, "manifest", "", "", kUnjudged);
  }

  template <size_t N>
  void unknown_members(const codec::Json& before, const codec::Json& after, const std::string& prefix,
                       const std::string_view (&judged)[N], const std::string& crossing = {}) {
    std::set<std::string, std::less<>> names;
    for (const auto* side : {&before, &after})
      if (const auto* object = side->as_object())
        for (const auto& [name, value] : *object) names.insert(name);
    for (const auto& name : names) {
      const auto *old = before.find(name), *now = after.find(name);
      if (std::find(std::begin(judged), std::end(judged), name) != std::end(judged)) continue;
      if (old && now && *old == *now) continue;
      const auto text = [](const codec::Json* value) {
        return value && !value->is_null() ? one_line(codec::write_json(*value), 80) : std::string();
      };
      add(Effect::kOpens, prefix + name, text(old), text(now), kUnjudged, crossing);
    }
  }

  static Manifest in_one_order(Manifest manifest) {
    for (auto& rule : manifest.egress) {
      std::sort(rule.ports.begin(), rule.ports.end());
      std::sort(rule.methods.begin(), rule.methods.end());
      std::sort(rule.paths.begin(), rule.paths.end());
      if (!rule.git) continue;
      std::sort(rule.git->push.begin(), rule.git->push.end());
      std::sort(rule.git->options.begin(), rule.git->options.end());
    }
    std::sort(manifest.egress.begin(), manifest.egress.end(), [](const auto& a, const auto& b) {
      return destination_words(a) + request_words(a) + a.credential <
             destination_words(b) + request_words(b) + b.credential;
    });
    return manifest;
  }

  const Manifest& before_;
  const Manifest& after_;
  std::vector<Change> changes_;
};

}  // namespace

std::vector<Change> diff(const Manifest& before, const Manifest& after) {
  return Differ(before, after).run();
}

}  // namespace firestop::manifest
