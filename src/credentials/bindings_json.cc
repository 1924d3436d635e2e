#include "credentials/bindings.h"

namespace firestop::credentials {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

constexpr const char* kKinds[] = {"env", "file", "command"};

Json texts_json(const std::vector<std::string>& texts) {
  JsonArray out;
  for (const auto& text : texts) out.emplace_back(text);
  return out;
}

Result<std::vector<std::string>> texts_from(const Json* json) {
  std::vector<std::string> out;
  const auto* list = json ? json->as_array() : nullptr;
  if (!list) return fail("credentials.bad", "no list");
  for (const auto& item : *list) {
    const auto* text = item.as_string();
    if (!text) return fail("credentials.bad", "no text");
    out.push_back(*text);
  }
  return out;
}

Json source_json(const Source& source) {
  return JsonObject{{"kind", kKinds[static_cast<size_t>(source.kind)]},
                    {"place", source.place},
                    {"command", texts_json(source.command)},
                    {"cache_ms", static_cast<int64_t>(source.cache.count())}};
}

Result<Source> source_from(const Json& json) {
  Source out;
  const std::string kind = json.string_or("kind", "");
  bool known = false;
  for (size_t at = 0; at < std::size(kKinds); ++at)
    if (kind == kKinds[at]) {
      out.kind = static_cast<Source::Kind>(at);
      known = true;
    }
  if (!known) return fail("credentials.bad", "no kind of source");
  out.place = json.string_or("place", "");
  TRY_ASSIGN(out.command, texts_from(json.find("command")));
  out.cache = std::chrono::milliseconds(json.int_or("cache_ms", 0));
  if (out.kind == Source::Kind::kCommand ? out.command.empty() : out.place.empty())
    return fail("credentials.bad", "an empty source");
  return out;
}

}  // namespace

Json to_json(const Bindings& bindings) {
  JsonObject out;
  for (const auto& [name, binding] : bindings) {
    JsonObject one{{"hosts", texts_json(binding.hosts)}};
    if (const auto& oauth = binding.oauth) {
      one["oauth"] =
          JsonObject{{"token_url", oauth->token_url},
                     {"client_id", oauth->client_id},
                     {"scope", oauth->scope},
                     {"ca", oauth->ca},
                     {"rotates", oauth->rotates},
                     {"client_secret", oauth->client_secret ? source_json(*oauth->client_secret) : Json()},
                     {"refresh_token", source_json(oauth->refresh_token)}};
    } else {
      one["source"] = source_json(binding.source);
    }
    out[name] = std::move(one);
  }
  return out;
}

Result<Bindings> bindings_from_json(const Json& json) {
  const auto* object = json.as_object();
  if (!object) return fail("credentials.bad", "bindings are no object");
  Bindings out;
  for (const auto& [name, one] : *object) {
    Binding binding;
    TRY_ASSIGN(binding.hosts, texts_from(one.find("hosts")));
    if (const auto* oauth = one.find("oauth")) {
      auto& to = binding.oauth.emplace();
      to.token_url = oauth->string_or("token_url", "");
      to.client_id = oauth->string_or("client_id", "");
      to.scope = oauth->string_or("scope", "");
      to.ca = oauth->string_or("ca", "");
      to.rotates = oauth->bool_or("rotates", false);
      const auto* secret = oauth->find("client_secret");
      if (secret && !secret->is_null()) {
        TRY_ASSIGN(to.client_secret.emplace(), source_from(*secret));
      }
      const auto* token = oauth->find("refresh_token");
      if (!token) return fail("credentials.bad", "no refresh token");
      TRY_ASSIGN(to.refresh_token, source_from(*token));
    } else {
      const auto* source = one.find("source");
      if (!source) return fail("credentials.bad", "no source");
      TRY_ASSIGN(binding.source, source_from(*source));
    }
    out.emplace(name, std::move(binding));
  }
  return out;
}

}  // namespace firestop::credentials
