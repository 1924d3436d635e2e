// Each struct is taken apart by a structured binding that names every field: whoever adds a field to the
// manifest gets a compile error here, and decides whether it is signed.
#include "manifest/canonical.h"

#include <type_traits>

#include "base/digest.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/utf8.h"

namespace firestop::manifest {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

template <typename T>
Json list(const std::vector<T>& values) {
  JsonArray out;
  for (const auto& value : values) {
    if constexpr (std::is_integral_v<T>)
      out.push_back(static_cast<int64_t>(value));
    else
      out.push_back(value);
  }
  return out;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// An object whose empty members are left out. No optional value is put here as 0, so that nothing that is
// there looks like nothing.
class Sparse {
 public:
  void put(const char* key, const std::string& value) {
    if (!value.empty()) object_[key] = value;
  }
  void put(const char* key, const std::vector<std::string>& values) {
    if (!values.empty()) object_[key] = list(values);
  }
  void put(const char* key, uint64_t value) {
    if (value != 0) object_[key] = value;
  }
  void flag(const char* key, bool value) {
    if (value) object_[key] = true;
  }
  void set(const char* key, Json value) { object_[key] = std::move(value); }
  JsonObject take() { return std::move(object_); }

 private:
  JsonObject object_;
};

Json entry_json(const Entry& entry) {
  const auto& [path, type, where, repo, host, ref, depth, content, source, output, max_bytes, permissions,
               owner, group] = entry;
  const auto& [source_path, source_bind] = source;
  Sparse out;
  out.put("type", to_string(type));
  out.put("repo", repo);
  out.put("host", host);
  out.put("ref", ref);
  if (depth) out.set("depth", *depth);
  if (codec::is_utf8(content))
    out.put("content", content);
  else
    out.put("content_base64", codec::encode_base64(content));
  out.put("source_path", source_path);
  out.put("source_bind", source_bind);
  out.flag("output", output);
  out.put("max_bytes", max_bytes);
  out.put("permissions", permissions);
  out.put("owner", owner);
  out.put("group", group);
  return out.take();
}

Json skill_json(const Skill& skill) {
  const auto& [name, where, source] = skill;
  const auto& [path, bind] = source;
  Sparse out;
  out.put("source_path", path);
  out.put("source_bind", bind);
  return out.take();
}

Json user_json(const User& user) {
  const auto& [name, groups] = user;
  Sparse out;
  out.put("name", name);
  out.put("groups", groups);
  return out.take();
}

Json network_json(const NetworkLimits& limits) {
  const auto& [bytes, rate, connections] = limits;
  return JsonObject{
      {"bytes", or_null(bytes)}, {"rate", or_null(rate)}, {"connections", or_null(connections)}};
}

Json limits_json(const Limits& limits) {
  const auto& [cpus, memory, disk, io, processes, open_files, output, result, result_files, memory_directory,
               memory_files, network] = limits;
  return JsonObject{{"cpus", cpus},
                    {"memory", memory},
                    {"disk", disk},
                    {"io", or_null(io)},
                    {"processes", processes},
                    {"open_files", open_files},
                    {"output", output},
                    {"result", result},
                    {"result_files", result_files},
                    {"memory_directory", memory_directory},
                    {"memory_files", memory_files},
                    {"network", network_json(network)}};
}

Json git_json(const EgressRule::Git& git) {
  const auto& [repository, fetch, push, deletes, options] = git;
  Sparse out;
  out.put("repository", repository);
  out.flag("fetch", fetch);
  out.put("push", push);
  out.flag("delete", deletes);
  out.put("push_options", options);
  return out.take();
}

Json rule_json(const EgressRule& rule) {
  const auto& [where, name, preset, host, cidr, ports, methods, paths, protocol, private_addresses, websocket,
               plain_text, ca, credential, placeholders_in_body, git] = rule;
  Sparse out;
  out.put("host", host);
  out.put("cidr", cidr);
  out.set("ports", list(ports));
  out.put("methods", methods);
  out.put("paths", paths);
  out.put("protocol", protocol);
  out.flag("private", private_addresses);
  out.flag("websocket", websocket);
  out.flag("plain_text", plain_text);
  out.put("ca", ca);
  out.put("credential", credential);
  out.put("placeholders_in_body", placeholders_in_body);
  if (git) out.set("git", git_json(*git));
  return out.take();
}

Json credential_json(const Credential& credential) {
  const auto& [where, name, env, inject, user, header, query, scheme, key_id, session_token, prefix, length,
               on_alarm] = credential;
  Sparse out;
  out.put("name", name);
  out.put("env", env);
  out.put("inject", inject);
  out.put("user", user);
  out.put("header", header);
  out.put("query", query);
  out.put("scheme", scheme);
  out.put("key_id", key_id);
  out.put("session_token", session_token);
  out.put("prefix", prefix);
  out.put("length", length);
  out.put("on_alarm", on_alarm);
  return out.take();
}

Json manifest_json(const Manifest& manifest) {
  const auto& [file, folder, kind, name, description, rating, idle, image, entries, environment, users,
               groups, run_as, command, capabilities, skills, limits, egress, presets, credentials,
               declared] = manifest;
  const auto& [recipe, oci] = image;
  Sparse image_out;
  image_out.put("recipe", recipe);
  image_out.put("oci", oci);
  JsonObject entries_out, environment_out, skills_out, credentials_out;
  for (const auto& entry : entries) entries_out[entry.path] = entry_json(entry);
  for (const auto& [variable, value] : environment) environment_out[variable] = value;
  // Mappings in the document: their order says nothing.
  for (const auto& skill : skills) skills_out[skill.name] = skill_json(skill);
  for (const auto& credential : credentials) credentials_out[credential.name] = credential_json(credential);
  JsonArray users_out, capabilities_out, egress_out;
  for (const auto& user : users) users_out.push_back(user_json(user));
  for (const auto capability : capabilities) capabilities_out.push_back(to_string(capability));
  for (const auto& rule : egress) egress_out.push_back(rule_json(rule));
  return JsonObject{{"firestop", 1},
                    {"kind", kind == Kind::kRun ? "run" : "verdict"},
                    {"name", name},
                    {"description", description},
                    {"rating_ms", static_cast<int64_t>(rating.count())},
                    {"idle_ms", idle ? Json(static_cast<int64_t>(idle->count())) : Json()},
                    {"image", image_out.take()},
                    {"entries", std::move(entries_out)},
                    {"environment", std::move(environment_out)},
                    {"users", std::move(users_out)},
                    {"groups", list(groups)},
                    {"run_as", run_as},
                    {"command", list(command)},
                    {"capabilities", std::move(capabilities_out)},
                    {"skills", std::move(skills_out)},
                    {"limits", limits_json(limits)},
                    {"egress", std::move(egress_out)},
                    {"credentials", std::move(credentials_out)}};
}

}  // namespace

Result<std::string> canonical_json(const Manifest& manifest, const Lock* lock) {
  return codec::write_canonical_json(
      JsonObject{{"lock", lock ? lock->to_json() : Json()}, {"manifest", manifest_json(manifest)}});
}

Result<std::string> canonical_digest(const Manifest& manifest, const Lock* lock) {
  TRY_ASSIGN(const std::string text, canonical_json(manifest, lock));
  return sha256_hex(text);
}

}  // namespace firestop::manifest
