// One POST, blocking: of a form for the source process, of JSON for exports. TLS is verified against the
// host's store and, if given, one file of certificates more. https:// goes through HTTPS_PROXY where there is
// one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace firestop::credentials {

struct PostAnswer {
  int status = 0;
  std::string body;  // at most kMostAnswer bytes
  std::optional<std::chrono::seconds> retry_after;
};
inline constexpr size_t kMostAnswer = 64u << 10;

struct Post {
  std::string url;
  std::string ca_file;  // "" means none
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;  // more of them; names and values of RFC 9110
  std::string_view body;
};
// "post.failed" says what went wrong, and nothing of what was sent or said.
Result<PostAnswer> http_post(const Post& post, std::chrono::milliseconds limit);

// `form` is sent as application/x-www-form-urlencoded. "credential.unavailable" says what went wrong, and
// nothing of what was sent or said.
Result<PostAnswer> https_post(const std::string& url, const std::string& ca_file, std::string_view form,
                              std::chrono::milliseconds limit);

void append_form_field(std::string& form, std::string_view name, std::string_view value);

}  // namespace firestop::credentials
