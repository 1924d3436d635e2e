// An access token for a refresh token (RFC 6749, section 6), fetched by the source process itself: the
// refresh token is in no other process.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "credentials/bindings.h"
#include "credentials/secret.h"

namespace firestop::credentials {

struct AccessToken {
  Secret secret;
  std::chrono::milliseconds valid{};  // a little less than the server said
  std::optional<Secret> refresh;      // takes the place of the refresh token that it was fetched with
};

// Blocks, for at most kLongestFetch. "credential.unavailable": no answer, or not one with a bearer token;
// with the server's `error` code, and nothing else that it said.
inline constexpr std::chrono::seconds kLongestFetch{20};
// `refresh`: the token to fetch it with; null: what the binding's source has.
Result<AccessToken> fetch_access_token(const OAuth& oauth, const Secret* refresh = nullptr);

// The server's answer, a JSON document. For fetch_access_token() and its fuzzer.
Result<AccessToken> read_token_answer(int status, std::string_view body);

}  // namespace firestop::credentials
