#include "credentials/oauth.h"

#include <algorithm>

#include "credentials/https_post.h"
#include "credentials/source.h"
#include "http/message.h"

namespace firestop::credentials {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kUsualSeconds = 300;  // where the server does not say (RFC 6749 leaves it open)
constexpr int64_t kMostSeconds = 24 * 3600;

Unexpected unavailable(std::string why) {
  return fail("credential.unavailable", std::move(why));
}

// RFC 6749, section 5.2: one of a few words. Anything else of the answer may hold the tokens.
std::string error_word(const codec::Json& json) {
  const std::string word = json.string_or("error", "");
  for (const char* known : {"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
                            "unsupported_grant_type", "invalid_scope"})
    if (word == known) return word;
  return "an error";
}

// A token as a member of the answer; nothing if it has none of that name.
Result<std::optional<Secret>> token_in(const codec::Json& json, const char* name) {
  const auto* token = json.find(name);
  if (!token) return std::optional<Secret>();
  const auto* text = token->as_string();
  const bool plain =
      text && std::all_of(text->begin(), text->end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!plain || text->size() < kLeastSecret || text->size() > kMostSecret)
    return unavailable("the token server gave something else as its " + std::string(name));
  TRY_ASSIGN(Secret secret, Secret::copy(*text));
  return std::optional<Secret>(std::move(secret));
}

}  // namespace

Result<AccessToken> read_token_answer(int status, std::string_view body) {
  const auto json = codec::parse_json(body);
  if (status != 200)
    return unavailable("the token server answers " + std::to_string(status) +
                       (json ? ", " + error_word(*json) : ""));
  if (!json) return unavailable("the token server's answer is no JSON");
  TRY_ASSIGN(auto token, token_in(*json, "access_token"));
  if (!token) return unavailable("the token server gave no access token");
  TRY_ASSIGN(auto refresh, token_in(*json, "refresh_token"));
  if (!http::same_name(json->string_or("token_type", "Bearer"), "Bearer"))
    return unavailable("the token server gave a token of another type than Bearer");
  // Renewed a little early: a request takes its time.
  const int64_t seconds = std::clamp<int64_t>(json->int_or("expires_in", kUsualSeconds), 0, kMostSeconds);
  const int64_t early = std::min<int64_t>(60, seconds / 5);
  return AccessToken{std::move(*token), milliseconds(1000 * (seconds - early)), std::move(refresh)};
}

Result<AccessToken> fetch_access_token(const OAuth& oauth, const Secret* refresh) {
  std::optional<Secret> read;
  if (!refresh) {
    TRY_ASSIGN(read, read_source(oauth.refresh_token));
    refresh = &*read;
  }
  Wiped form;
  form.text.reserve(3 * kMostSecret);
  append_form_field(form.text, "grant_type", "refresh_token");
  append_form_field(form.text, "refresh_token", refresh->reveal());
  append_form_field(form.text, "client_id", oauth.client_id);
  if (oauth.client_secret) {
    TRY_ASSIGN(const Secret secret, read_source(*oauth.client_secret));
    append_form_field(form.text, "client_secret", secret.reveal());
  }
  if (!oauth.scope.empty()) append_form_field(form.text, "scope", oauth.scope);
  TRY_ASSIGN(auto answer, https_post(oauth.token_url, oauth.ca, form.text, kLongestFetch));
  const Wiped body(std::move(answer.body));
  return read_token_answer(answer.status, body.text);
}

}  // namespace firestop::credentials
