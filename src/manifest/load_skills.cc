#include <algorithm>

#include "manifest/loader.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;

constexpr size_t kMostSkills = 100;

void load_skill(Loading& loading, const Member& member) {
  Reader& reader = loading.reader;
  if (const auto why = why_not_run_name(member.key); !why.empty())
    reader.fault(member.key_where, member.field, in_quotes(member.key) + " " + why,
                 "expected the name of a skill, such as code-review");
  const Fields fields(reader, member, kSkillKeys, "a skill");
  if (!fields.valid()) return;
  loading.manifest.skills.push_back({member.key, member.key_where, load_local_source(loading, fields)});
}

}  // namespace

void load_skills(Loading& loading, const Fields& document) {
  Reader& reader = loading.reader;
  auto& skills = loading.manifest.skills;
  const bool granted = loading.manifest.capabilities.contains(Capability::kSkills);
  const auto place = document.get("skills");
  if (!place) {
    if (granted)
      reader.fault(document.key_position("capabilities"), "skills",
                   "is missing, and capabilities grants skills",
                   "expected the skills, such as {code-review: {src: skills/code-review}}");
    return;
  }
  const auto members = reader.members(*place, "a mapping of names to skills", kMostSkills);
  for (const auto& member : members) load_skill(loading, member);
  std::sort(skills.begin(), skills.end(), [](const Skill& a, const Skill& b) { return a.name < b.name; });
  if (!granted)
    reader.fault(document.key_position("skills"), "skills", "is there, and capabilities does not grant it",
                 "expected skills among the capabilities");
  else if (members.empty() && place->node->kind == codec::YamlNode::Kind::kMapping)
    reader.fault(*place, "names no skill, and capabilities grants skills",
                 "expected a skill, or no such capability");
}

}  // namespace firestop::manifest
