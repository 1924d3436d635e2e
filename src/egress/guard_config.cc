// Structs are taken apart by structured bindings that name every field, as in the canonical form: whoever
// adds a field to a rule gets a compile error here.
#include "egress/guard_config.h"

namespace firestop::egress {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

Unexpected bad(const std::string& what) {
  return fail("egress.bad_config", "the configuration of the egress process has no right " + what);
}

Json texts(const std::vector<std::string>& from) {
  JsonArray out;
  for (const auto& text : from) out.emplace_back(text);
  return out;
}

// Reads members of one object; the first that is wrong is remembered.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  std::string text(const char* key) {
    const auto* value = json_.find(key);
    const auto* text = value ? value->as_string() : nullptr;
    if (!text) wrong_ = key;
    return text ? *text : "";
  }
  bool flag(const char* key) {
    const auto* value = json_.find(key);
    const auto* flag = value ? value->as_bool() : nullptr;
    if (!flag) wrong_ = key;
    return flag && *flag;
  }
  int64_t number(const char* key, int64_t least, int64_t most) {
    const auto* value = json_.find(key);
    const auto* number = value ? value->as_int() : nullptr;
    if (!number || *number < least || *number > most) wrong_ = key;
    return number ? *number : 0;
  }
  const JsonArray& list(const char* key) {
    static const JsonArray kNone;
    const auto* value = json_.find(key);
    const auto* list = value ? value->as_array() : nullptr;
    if (!list) wrong_ = key;
    return list ? *list : kNone;
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> out;
    for (const auto& item : list(key)) {
      const auto* text = item.as_string();
      if (!text) wrong_ = key;
      out.push_back(text ? *text : "");
    }
    return out;
  }
  Result<void> done() const { return wrong_.empty() ? Result<void>() : bad(wrong_); }

 private:
  const Json& json_;
  std::string wrong_;
};

Json rule_json(const manifest::EgressRule& rule) {
  const auto& [where, name, preset, host, cidr, ports, methods, paths, protocol, private_addresses, websocket,
               plain_text, ca, credential, placeholders_in_body, git] = rule;
  JsonArray numbers;
  for (const uint16_t port : ports) numbers.emplace_back(static_cast<int64_t>(port));
  JsonObject out{{"name", name},
                 {"preset", preset},
                 {"host", host},
                 {"cidr", cidr},
                 {"ports", std::move(numbers)},
                 {"methods", texts(methods)},
                 {"paths", texts(paths)},
                 {"protocol", protocol},
                 {"private", private_addresses},
                 {"websocket", websocket},
                 {"plain_text", plain_text},
                 {"ca", ca},
                 {"credential", credential},
                 {"placeholders_in_body", placeholders_in_body}};
  if (git) {
    const auto& [repository, fetch, push, deletes, options] = *git;
    out["git"] = JsonObject{{"repository", repository},
                            {"fetch", fetch},
                            {"push", texts(push)},
                            {"deletes", deletes},
                            {"options", texts(options)}};
  }
  return out;
}

Result<manifest::EgressRule> rule_from(const Json& json) {
  Members members(json);
  manifest::EgressRule out;
  out.name = members.text("name");
  out.preset = members.text("preset");
  out.host = members.text("host");
  out.cidr = members.text("cidr");
  for (const auto& port : members.list("ports")) {
    const auto* number = port.as_int();
    if (!number || *number < 1 || *number > 65535) return bad("port");
    out.ports.push_back(static_cast<uint16_t>(*number));
  }
  out.methods = members.texts("methods");
  out.paths = members.texts("paths");
  out.protocol = members.text("protocol");
  out.private_addresses = members.flag("private");
  out.websocket = members.flag("websocket");
  out.plain_text = members.flag("plain_text");
  out.ca = members.text("ca");
  out.credential = members.text("credential");
  out.placeholders_in_body = members.text("placeholders_in_body");
  if (const auto* git = json.find("git")) {
    Members of_git(*git);
    manifest::EgressRule::Git to;
    to.repository = of_git.text("repository");
    to.fetch = of_git.flag("fetch");
    to.push = of_git.texts("push");
    to.deletes = of_git.flag("deletes");
    to.options = of_git.texts("options");
    TRY(of_git.done());
    out.git = std::move(to);
  }
  TRY(members.done());
  if (out.host.empty() == out.cidr.empty()) return bad("host");
  return out;
}

Json credential_json(const manifest::Credential& credential) {
  const auto& [where, name, env, inject, user, header, query, scheme, key_id, session_token, prefix, length,
               on_alarm] = credential;
  return JsonObject{{"name", name},     {"env", env},       {"inject", inject},
                    {"user", user},     {"header", header}, {"query", query},
                    {"scheme", scheme}, {"key_id", key_id}, {"session_token", session_token},
                    {"prefix", prefix}, {"length", length}, {"on_alarm", on_alarm}};
}

Result<manifest::Credential> credential_from(const Json& json) {
  Members members(json);
  manifest::Credential out;
  out.name = members.text("name");
  out.env = members.text("env");
  out.inject = members.text("inject");
  out.user = members.text("user");
  out.header = members.text("header");
  out.query = members.text("query");
  out.scheme = members.text("scheme");
  out.key_id = members.text("key_id");
  out.session_token = members.text("session_token");
  out.prefix = members.text("prefix");
  out.length = static_cast<uint32_t>(members.number("length", 0, 4096));
  out.on_alarm = members.text("on_alarm");
  TRY(members.done());
  return out;
}

}  // namespace

Json to_json(const GuardParts& parts) {
  JsonArray rules, credentials, mappings;
  for (const auto& rule : parts.rules) rules.push_back(rule_json(rule));
  for (const auto& credential : parts.credentials) credentials.push_back(credential_json(credential));
  for (const auto& mapping : parts.connect_to)
    mappings.push_back(JsonObject{
        {"host", mapping.from.host}, {"port", static_cast<int64_t>(mapping.from.port)}, {"to", mapping.to}});
  return JsonObject{{"rules", std::move(rules)},
                    {"credentials", std::move(credentials)},
                    {"placeholders", credentials::to_json(parts.placeholders)},
                    {"connect_to", std::move(mappings)}};
}

Result<GuardParts> guard_parts_from_json(const Json& json) {
  GuardParts out;
  Members members(json);
  for (const auto& rule : members.list("rules")) {
    TRY_ASSIGN(out.rules.emplace_back(), rule_from(rule));
  }
  for (const auto& credential : members.list("credentials")) {
    TRY_ASSIGN(out.credentials.emplace_back(), credential_from(credential));
  }
  for (const auto& item : members.list("connect_to")) {
    Members mapping(item);
    out.connect_to.push_back({{mapping.text("host"), static_cast<uint16_t>(mapping.number("port", 1, 65535))},
                              mapping.text("to")});
    TRY(mapping.done());
  }
  TRY(members.done());
  const auto* placeholders = json.find("placeholders");
  if (!placeholders) return bad("placeholders");
  TRY_ASSIGN(out.placeholders, credentials::parse_placeholders(*placeholders));
  return out;
}

}  // namespace firestop::egress
