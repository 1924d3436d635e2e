#include <algorithm>
#include <map>

#include "manifest/loader.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;

constexpr size_t kMostCredentials = 100;
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
    {"prefix", "header", false, "what stands before it in the header, such as \"Token \"",
     &Credential::prefix},
    {"query", "query", true, "the name of the query parameter", &Credential::query},
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

void load_credential(Loading& loading, const Member& member, std::map<std::string, std::string>& variables) {
  Reader& reader = loading.reader;
  if (const auto why = why_not_bind_name(member.key); !why.empty())
    reader.fault(member.key_where, member.field, in_quotes(member.key) + " " + why,
                 "expected a name such as model");
  const Fields fields(reader, member, kCredentialKeys, "a credential");
  if (!fields.valid()) return;
  Credential out;
  out.name = member.key;
  out.where = member.key_where;

  if (const auto place = fields.require("env", "the variable in which the sandbox finds its placeholder")) {
    if (const auto name = reader.text(*place, "the name of a variable")) {
      if (const auto why = why_not_variable(*name); !why.empty())
        reader.fault(*place, in_quotes(*name) + " " + why, "expected a name such as API_KEY");
      else if (loading.manifest.environment.contains(*name))
        reader.fault(*place, in_quotes(*name) + " is set in workspace.environment too",
                     "expected another variable");
      else if (const auto [first, fresh] = variables.emplace(*name, member.key); !fresh)
        reader.fault(*place,
                     in_quotes(*name) + " is the variable of credential " + in_quotes(first->second) + " too",
                     "expected another variable");
      out.env = *name;
    }
  }
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
    const auto value = reader.text(*place, part.expected);
    if (!value) continue;
    if (const auto why = why_not_value(part, *value); !why.empty())
      reader.fault(*place, in_quotes(*value) + " " + why, std::string("expected ") + part.expected);
    out.*part.field = *value;
  }
  if (const auto place = fields.get("length"))
    if (const auto length = reader.integer(*place, 16, 4096)) out.length = static_cast<uint32_t>(*length);
  loading.manifest.credentials.push_back(std::move(out));
}

}  // namespace

void load_credentials(Loading& loading, const Place& place) {
  std::map<std::string, std::string> variables;  // of credentials: name to credential
  for (const auto& member :
       loading.reader.members(place, "a mapping of names to credentials", kMostCredentials))
    load_credential(loading, member, variables);
}

}  // namespace firestop::manifest
