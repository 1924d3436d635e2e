// One POST of a form, blocking, for the source process. TLS is verified against the host's store and, if
// given, one file of certificates more; http:// is for this host itself. Goes through HTTPS_PROXY where there
// is one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::credentials {

struct PostAnswer {
  int status = 0;
  std::string body;  // at most kMostAnswer bytes
};
inline constexpr size_t kMostAnswer = 64u << 10;

// `form` is sent as application/x-www-form-urlencoded. "credential.unavailable" says what went wrong, and
// nothing of what was sent or said.
Result<PostAnswer> https_post(const std::string& url, const std::string& ca_file, std::string_view form,
                              std::chrono::milliseconds limit);

void append_form_field(std::string& form, std::string_view name, std::string_view value);

}  // namespace firestop::credentials
