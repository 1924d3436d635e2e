// A push through its rule: the same decision however its bytes come; what passes is unchanged and asks for
// nothing that the rule doesn't allow; nothing passes of what is refused.
#include <algorithm>
#include <optional>

#include "check.h"
#include "egress/git_body.h"

using namespace firestop;

namespace {

struct Outcome {
  std::string out, code, detail;
};

Outcome through(const manifest::EgressRule::Git& git, std::string_view bytes, size_t piece) {
  const auto body = egress::make_push_body(git, "egress[0]", "");
  Outcome outcome;
  std::optional<http::Denial> denial;
  while (!bytes.empty() && !denial) {
    denial = body->feed(bytes.substr(0, piece), outcome.out);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (!denial) denial = body->finish(outcome.out);
  if (denial) outcome.code = denial->code;
  outcome.detail = body->detail();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  manifest::EgressRule::Git git;
  git.repository = "a/b";
  git.push = {"refs/heads/agent/**"};
  const Outcome whole = through(git, bytes, SIZE_MAX);
  const Outcome pieces = through(git, bytes, data[0] + size_t{1});
  FUZZ_CHECK(whole.code == pieces.code && whole.out == pieces.out);
  FUZZ_CHECK(whole.out == (whole.code.empty() ? bytes : ""));
  if (!whole.code.empty() || bytes == "0000") return 0;
  FUZZ_CHECK(whole.detail.starts_with("push: refs/heads/agent/"));
  FUZZ_CHECK(whole.detail.find("deleted") == std::string::npos);
  FUZZ_CHECK(bytes.find(" refs/heads/agent/") != std::string_view::npos);
  return 0;
}
