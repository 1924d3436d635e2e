#include "egress/way_out.h"

#include <cstdlib>

namespace firestop::egress {
namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  return value;
}

}  // namespace

Result<std::unique_ptr<WayOut>> WayOut::make(Loop& loop, Guard& guard, std::vector<std::string> hosts,
                                             const std::string& upstream_ca, const Recorder& record) {
  std::unique_ptr<WayOut> out(new WayOut(loop));
  TRY_ASSIGN(HostProxy proxy, HostProxy::from(environment));
  out->dialer_ = std::make_unique<HostDialer>(loop, out->resolver_, std::move(proxy));
  CertificateAuthority::Settings settings;
  settings.hosts = std::move(hosts);
  TRY_ASSIGN(out->authority_, CertificateAuthority::make(std::move(settings)));
  const auto trust = read_host_trust(environment);
  // A host without certificates of its own trusts those that its operator names.
  if (!trust && upstream_ca.empty()) return tl::unexpected(trust.error());
  TRY_ASSIGN(out->origin_tls_, OriginTls::make(trust ? *trust : "", upstream_ca));
  out->raw_ = std::make_unique<RawConnections>(loop, *out->dialer_, record);
  out->carrier_ = std::make_unique<Carrier>(loop, Carrier::Parts{.guard = guard,
                                                                 .dialer = *out->dialer_,
                                                                 .authority = *out->authority_,
                                                                 .origin_tls = *out->origin_tls_,
                                                                 .raw = *out->raw_,
                                                                 .record = record,
                                                                 .spend = {}});
  return out;
}

void WayOut::close() {
  carrier_.reset();
  raw_.reset();
}

}  // namespace firestop::egress
