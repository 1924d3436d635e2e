// Why something does not cross, in one form: the guest gets it as a response that an agent can act on, the
// record gets the same code. Codes are stable: docs/egress.md.
#pragma once

#include <optional>
#include <string>

#include "http/message.h"

namespace firestop::http {

struct Denial {
  // A whole answer of another protocol's own form, such as git's; instead of the usual one.
  struct Answer {
    int status = 0;
    Headers headers;
    std::string body;
  };

  int status = 403;        // 403 policy, 400 not clear, 502 upstream or credential, 504 no answer
  std::string code;        // "egress.no_rule"
  std::string rule;        // the rule that came nearest, "egress[2]", or ""
  std::string message;     // what happened
  std::string what_to_do;  // what would change it
  bool alarm = false;      // a credential's placeholder was about to leave
  std::string credential;  // with alarm: whose; the manifest's on_alarm of it says what happens next
  std::optional<Answer> answer;
};

inline constexpr std::string_view kDenialCodeHeader = "X-Firestop-Code";

// The answer that says it: the denial's own, or JSON where `accept` asks for it, or lines of text.
struct DenialContext {
  std::string_view accept;  // the request's header
  std::string_view host;    // that was to be reached
  uint16_t port = 0;
};
Denial::Answer answer_to(const Denial& denial, const DenialContext& context);

}  // namespace firestop::http
