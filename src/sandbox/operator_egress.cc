#include "sandbox/operator_egress.h"

#include <algorithm>

#include "base/file.h"
#include "egress/policy.h"

namespace firestop::sandbox {
namespace {

constexpr uint64_t kMostCertificates = 4u << 20;  // bytes

Result<std::string> read_certificates(const std::string& file, const char* code, const std::string& who) {
  auto text = read_file(file, kMostCertificates);
  if (!text) return fail(code, who + ": " + text.error().message);
  if (text->find("-----BEGIN CERTIFICATE-----") == std::string::npos)
    return fail(code, who + ": " + file + " holds no certificate (PEM)");
  if (!text->ends_with('\n')) *text += '\n';
  return std::move(*text);
}

bool has(const std::vector<egress::Mapping>& mappings, const http::Authority& from) {
  return std::any_of(mappings.begin(), mappings.end(),
                     [&](const egress::Mapping& one) { return one.from == from; });
}

}  // namespace

Result<OperatorEgress> operator_egress(const manifest::Manifest& manifest, const HostConfig& config,
                                       const std::vector<std::string>& connect_to,
                                       const std::string& upstream_ca) {
  OperatorEgress out;
  if (manifest.egress.empty() && (!connect_to.empty() || !upstream_ca.empty()))
    return fail("usage.connect_to", "the manifest has no `egress`: nothing is dialled, wherever it leads",
                "leave out --connect-to and --upstream-ca");
  if (manifest.egress.empty()) return out;
  const egress::Policy policy(manifest.egress);
  const auto used = [&](const egress::Mapping& mapping) {
    return policy.connection(mapping.from).use != egress::ConnectionPlan::Use::kDeny;
  };
  for (const auto& text : connect_to) {
    auto mapping = egress::parse_mapping(text);
    if (!mapping)
      return fail("usage.connect_to", "--connect-to " + mapping.error().message, mapping.error().hint);
    if (!used(*mapping))
      return fail("usage.connect_to",
                  "--connect-to " + text + ": no rule of the manifest has that host and port",
                  "leave it out, or see whether the name is spelled right");
    if (!has(out.connect_to, mapping->from)) out.connect_to.push_back(std::move(*mapping));
  }
  for (const auto& mapping : config.connect_to)
    if (used(mapping) && !has(out.connect_to, mapping.from)) out.connect_to.push_back(mapping);
  if (!upstream_ca.empty()) {
    TRY_ASSIGN(out.upstream_ca, read_certificates(upstream_ca, "usage.upstream_ca", "--upstream-ca"));
  }
  if (!config.upstream_ca.empty()) {
    TRY_ASSIGN(const auto more, read_certificates(config.upstream_ca, "config.bad",
                                                  "upstream_ca of the host's configuration"));
    out.upstream_ca += more;
  }
  return out;
}

}  // namespace firestop::sandbox
