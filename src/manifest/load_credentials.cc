#include <algorithm>
#include <map>

#include "manifest/loader.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;

constexpr size_t kMostCredentials = 100;
constexpr size_t kLeastRandom = 22;  // characters of a placeholder that nobody can guess: 130 bits
constexpr std::string_view kAlarms[] = {"deny", "freeze", "kill"};
constexpr std::string_view kInjections[] = {"bearer", "basic", "header", "query", "sigv4", "oauth"};

// A key that belongs to one way of injection only.
struct Belongs {
  const char* key;
  const char* inject;
  bool required;
  const char* expected;
  std::string Credential::* field;
};
constexpr Belongs kBelongs[] = {
    {"user", "basic", true, "the user name that goes with it", &Credential::user},
    {"header", "header", true, "the name of the header, such as X-Api-Key", &Credential::header},
    {"scheme", "header", false, "the word before it in the header, such as Token", &Credential::scheme},
    {"query", "query", true, "the name of the query parameter", &Credential::query},
    {"key_id", "sigv4", true, "the variable in which the sandbox finds the placeholder of the key's id",
     &Credential::key_id},
    {"session_token", "sigv4", false,
     "the variable in which the sandbox finds the placeholder of a session token",
     &Credential::session_token},
};

std::string why_not_value(const Belongs& part, const std::string& value) {
  if (part.field == &Credential::header) return why_not_header(value);
  const bool printable =
      std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  if (!printable || value.size() > 128) return "has other than printable ASCII characters, or more than 128";
  if (part.field == &Credential::user && value.find(':') != std::string::npos)
    return "contains ':', which ends the user name in Basic authentication";
  if (part.field == &Credential::query && value.find_first_of(" &=#%?") != std::string::npos)
    return "contains a character that query parameters escape";
  return {};
}

using Variables = std::map<std::string, std::string>;  // of credentials: name to credential

// A variable that no other credential has, and that the environment does not set.
std::string load_variable(Loading& loading, const Place& place, const std::string& credential,
                          Variables& variables) {
  Reader& reader = loading.reader;
  const auto name = reader.text(place, "the name of a variable");
  if (!name) return {};
  if (const auto why = why_not_variable(*name); !why.empty())
    reader.fault(place, in_quotes(*name) + " " + why, "expected a name such as API_KEY");
  else if (loading.manifest.environment.contains(*name))
    reader.fault(place, in_quotes(*name) + " is set in workspace.environment too",
                 "expected another variable");
  else if (const auto [first, fresh] = variables.emplace(*name, credential); !fresh)
    reader.fault(place,
                 in_quotes(*name) + " is the variable of credential " + in_quotes(first->second) + " too",
                 "expected another variable");
  return *name;
}

// What the placeholder looks like, and what happens when it is seen where it does not belong.
void load_placeholder(Reader& reader, const Fields& fields, Credential& out) {
  if (const auto place = fields.get("prefix")) {
    if (const auto prefix = reader.text(*place, "what the placeholder begins with, such as sk-")) {
      const bool plain = std::all_of(prefix->begin(), prefix->end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_' || c == '.';
      });
      if (!plain || prefix->size() > 64)
        reader.fault(*place,
                     in_quotes(*prefix) +
                         " has other characters than letters, digits, '-', '_' and '.', "
                         "or more than 64",
                     "expected a beginning such as sk-");
      out.prefix = *prefix;
    }
  }
  if (const auto place = fields.get("length")) {
    const auto least = static_cast<int64_t>(std::min<size_t>(out.prefix.size(), 64) + kLeastRandom);
    if (const auto length = reader.integer(*place, least, 4096)) out.length = static_cast<uint32_t>(*length);
  }
  if (const auto place = fields.get("on_alarm"))
    if (const auto index = reader.word(*place, kAlarms)) out.on_alarm = kAlarms[*index];
}

void load_credential(Loading& loading, const Member& member, Variables& variables) {
  Reader& reader = loading.reader;
  if (const auto why = why_not_bind_name(member.key); !why.empty())
    reader.fault(member.key_where, member.field, in_quotes(member.key) + " " + why,
                 "expected a name such as model");
  const Fields fields(reader, member, kCredentialKeys, "a credential");
  if (!fields.valid()) return;
  Credential out;
  out.name = member.key;
  out.where = member.key_where;

  if (const auto place = fields.require("env", "the variable in which the sandbox finds its placeholder"))
    out.env = load_variable(loading, *place, member.key, variables);
  const auto inject = fields.require("inject", listed(kInjections));
  if (inject)
    if (const auto index = reader.word(*inject, kInjections)) out.inject = kInjections[*index];
  for (const auto& part : kBelongs) {
    const bool belongs = out.inject == part.inject;
    const auto place =
        belongs && part.required ? fields.require(part.key, part.expected) : fields.get(part.key);
    if (!place) continue;
    if (!belongs) {
      if (!out.inject.empty())
        reader.fault(fields.key_position(part.key), place->field, "means nothing for inject: " + out.inject,
                     std::string("expected it with inject: ") + part.inject);
      continue;
    }
    if (part.field == &Credential::key_id || part.field == &Credential::session_token) {
      out.*part.field = load_variable(loading, *place, member.key, variables);
      continue;
    }
    const auto value = reader.text(*place, part.expected);
    if (!value) continue;
    if (const auto why = why_not_value(part, *value); !why.empty())
      reader.fault(*place, in_quotes(*value) + " " + why, std::string("expected ") + part.expected);
    out.*part.field = *value;
  }
  load_placeholder(reader, fields, out);
  loading.manifest.credentials.push_back(std::move(out));
}

}  // namespace

void load_credentials(Loading& loading, const Place& place) {
  Variables variables;
  for (const auto& member :
       loading.reader.members(place, "a mapping of names to credentials", kMostCredentials))
    load_credential(loading, member, variables);
}

}  // namespace firestop::manifest
