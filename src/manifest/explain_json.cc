#include "manifest/explain.h"
#include "manifest/explain_facts.h"

namespace firestop::manifest {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

Json strings(const std::vector<std::string>& words) {
  JsonArray out;
  for (const auto& word : words) out.emplace_back(word);
  return out;
}

void add_text(JsonObject& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

Json entry_json(const Entry& entry) {
  JsonObject out{{"path", entry.path}, {"type", to_string(entry.type)}};
  switch (entry.type) {
    case EntryType::kGitRepo:
      out["repo"] = entry.repo;
      add_text(out, "host", entry.host);
      out["ref"] = entry.ref.empty() ? "HEAD" : entry.ref;
      out["depth"] = entry.depth ? Json(static_cast<int64_t>(*entry.depth)) : Json();
      break;
    case EntryType::kFile:
      out["bytes"] = static_cast<int64_t>(entry.content.size());
      break;
    case EntryType::kDir:
      out["output"] = entry.output;
      break;
    case EntryType::kMount:
      out["read_only"] = true;
      [[fallthrough]];
    case EntryType::kLocalFile:
    case EntryType::kLocalDir:
      add_text(out, "source_path", entry.source.path);
      add_text(out, "source_bind", entry.source.bind);
      break;
  }
  if (entry.permissions != 0) out["permissions"] = static_cast<int64_t>(entry.permissions);
  add_text(out, "owner", entry.owner);
  add_text(out, "group", entry.group);
  return out;
}

JsonArray out_json(const Manifest& manifest) {
  JsonArray out;
  for (const auto& entry : manifest.entries) {
    if (entry.type == EntryType::kGitRepo && entry.host.empty() && manifest.kind == Kind::kRun)
      out.push_back(JsonObject{
          {"path", entry.path}, {"kind", "branch"}, {"repo", entry.repo}, {"ref", "refs/heads/agent/NAME"}});
    if (entry.output)
      out.push_back(JsonObject{{"path", entry.path}, {"kind", "output"}, {"max_bytes", entry.max_bytes}});
  }
  if (manifest.capabilities.contains(Capability::kMemory))
    out.push_back(JsonObject{{"path", kMemoryPath},
                             {"kind", "memory"},
                             {"max_bytes", manifest.limits.memory_directory},
                             {"max_files", static_cast<int64_t>(manifest.limits.memory_files)}});
  out.push_back(JsonObject{{"kind", "stdout_stderr"}, {"max_bytes", manifest.limits.output}});
  return out;
}

Json rule_json(const EgressRule& rule) {
  JsonObject out{{"protocol", rule.protocol},
                 {"private", rule.private_addresses},
                 {"websocket", rule.websocket},
                 {"plain_text", rule.plain_text}};
  add_text(out, "ca", rule.ca);
  add_text(out, "preset", rule.preset);
  add_text(out, "host", rule.host);
  add_text(out, "cidr", rule.cidr);
  add_text(out, "credential", rule.credential);
  add_text(out, "placeholders_in_body", rule.placeholders_in_body);
  JsonArray ports;
  for (const uint16_t port : rule.ports) ports.emplace_back(static_cast<int>(port));
  out["ports"] = ports;
  // Null means every one: an empty list would mean none.
  out["methods"] = rule.methods.empty() ? Json() : strings(rule.methods);
  out["paths"] = rule.paths.empty() ? Json() : strings(rule.paths);
  if (rule.git)
    out["git"] = JsonObject{{"repository", rule.git->repository},
                            {"fetch", rule.git->fetch},
                            {"push", strings(rule.git->push)},
                            {"delete", rule.git->deletes},
                            {"push_options", strings(rule.git->options)}};
  return out;
}

}  // namespace

codec::Json explain_json(const Manifest& manifest) {
  JsonArray in, mounts, skills, rules, credentials, granted, denied;
  for (const auto& entry : manifest.entries)
    (entry.type == EntryType::kMount ? mounts : in).push_back(entry_json(entry));
  for (const auto& skill : manifest.skills) {
    JsonObject one{{"name", skill.name}, {"path", std::string(kSkillsPath) + "/" + skill.name}};
    add_text(one, "source_path", skill.source.path);
    add_text(one, "source_bind", skill.source.bind);
    skills.push_back(std::move(one));
  }
  for (const auto& rule : manifest.egress) rules.push_back(rule_json(rule));
  for (const auto& credential : manifest.credentials)
    credentials.push_back(JsonObject{{"name", credential.name},
                                     {"env", credential.env},
                                     {"inject", credential.inject},
                                     {"on_alarm", credential.on_alarm}});
  for (const auto capability : manifest.capabilities) granted.emplace_back(to_string(capability));
  for (const auto& [what, meaning] : denied_by(manifest))
    denied.push_back(JsonObject{{"what", what}, {"meaning", meaning}});
  JsonObject caps;
  for (const auto& cap : caps_of(manifest))
    caps[cap.field] = JsonObject{{"value", cap.value}, {"unit", cap.unit}, {"declared", cap.declared}};

  JsonObject account{{"name", manifest.run_as},
                     {"uid", static_cast<int64_t>(manifest.uid_of(manifest.run_as))}};
  for (const auto& user : manifest.users)
    if (user.name == manifest.run_as) account["groups"] = strings(user.groups);
  std::vector<std::string> names;
  for (const auto& [name, value] : manifest.environment) names.push_back(name);
  JsonObject image;
  add_text(image, "recipe", manifest.image.recipe);
  add_text(image, "oci", manifest.image.oci);

  return JsonObject{
      {"name", manifest.name},
      {"description", manifest.description},
      {"kind", manifest.kind == Kind::kRun ? "run" : "verdict"},
      {"file", manifest.file},
      {"rating_ms", static_cast<int64_t>(manifest.rating.count())},
      {"files_in", in},
      {"mounts", mounts},
      {"skills", skills},
      {"out", out_json(manifest)},
      {"network", JsonObject{{"device", !manifest.egress.empty()}, {"rules", rules}}},
      {"credentials", credentials},
      {"account", account},
      {"command", strings(manifest.command)},
      {"image", image},
      {"environment", JsonObject{{"declared", strings(names)},
                                 {"set_by_firestop", strings(variables_set_by_firestop(manifest))}}},
      {"capabilities", granted},
      {"caps", caps},
      {"not_granted", denied},
  };
}

}  // namespace firestop::manifest
