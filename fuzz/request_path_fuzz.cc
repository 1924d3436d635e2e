// Any bytes as a request's target, against rules whose patterns forbid what lies above them: what has one
// form is in that form already, and nothing that some server reads as a way up is ever matched.
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.h"
#include "egress/policy.h"
#include "egress/request_path.h"

using namespace firestop;

namespace {

std::string decoded(std::string text) {
  for (int round = 0; round < 8; ++round) {
    std::string out;
    for (size_t at = 0; at < text.size(); ++at) {
      unsigned byte = 0;
      if (text[at] == '%' && at + 2 < text.size() &&
          std::sscanf(text.substr(at + 1, 2).c_str(), "%2x", &byte) == 1 &&
          std::isxdigit(static_cast<unsigned char>(text[at + 1])) &&
          std::isxdigit(static_cast<unsigned char>(text[at + 2]))) {
        out += static_cast<char>(byte);
        at += 2;
      } else {
        out += text[at];
      }
    }
    text = out;
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string target(reinterpret_cast<const char*>(data), size);
  const auto read = egress::read_request_path(target);
  FUZZ_CHECK(read.path.empty() != read.why_not.empty());
  manifest::EgressRule rule;
  rule.host = "a.example.com";
  rule.protocol = "http";
  rule.ports = {443};
  rule.paths = {"/public/**", "/v1/*/x", target.substr(0, target.find('?'))};
  const egress::Policy policy({rule});
  const auto verdict =
      policy.request({.scheme = "https", .to = {"a.example.com", 443}, .method = "GET", .target = target});
  if (!read.why_not.empty()) {
    FUZZ_CHECK(!verdict.allowed());
    return 0;
  }
  if (read.path == "*") return 0;
  const auto again = egress::read_request_path(read.path);
  FUZZ_CHECK(again.path == read.path);
  std::string deep = decoded(read.path);
  for (size_t at = 0; at <= deep.size();) {
    const size_t end = std::min(deep.find_first_of("/\\", at), deep.size());
    std::string part = deep.substr(at, end - at);
    part = part.substr(0, part.find(';'));
    FUZZ_CHECK(part != "..");
    at = end + 1;
  }
  if (egress::path_matches("/public/**", read.path)) FUZZ_CHECK(deep.starts_with("/public/"));
  return 0;
}
