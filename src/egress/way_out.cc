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

Result<std::unique_ptr<WayOut>> WayOut::make(Loop& loop, Guard& guard, Settings settings,
                                             const Recorder& record) {
  std::unique_ptr<WayOut> out(new WayOut(loop));
  TRY_ASSIGN(HostProxy proxy, HostProxy::from(environment));
  out->dialer_ = std::make_unique<HostDialer>(loop, out->resolver_, std::move(proxy));
  CertificateAuthority::Settings authority;
  authority.hosts = std::move(settings.hosts);
  TRY_ASSIGN(out->authority_, CertificateAuthority::make(std::move(authority)));
  const auto trust = read_host_trust(environment);
  // A host without certificates of its own trusts those that its operator names.
  if (!trust && settings.upstream_ca.empty()) return tl::unexpected(trust.error());
  TRY_ASSIGN(out->origin_tls_, OriginTls::make(trust ? *trust : "", settings.upstream_ca));
  out->raw_ =
      std::make_unique<RawConnections>(loop, *out->dialer_, record, Tunnel::Limits{.spend = settings.spend});
  out->carrier_ = std::make_unique<Carrier>(loop, Carrier::Parts{.guard = guard,
                                                                 .dialer = *out->dialer_,
                                                                 .authority = *out->authority_,
                                                                 .origin_tls = *out->origin_tls_,
                                                                 .raw = *out->raw_,
                                                                 .record = record,
                                                                 .spend = std::move(settings.spend)});
  return out;
}

void WayOut::close() {
  carrier_.reset();
  raw_.reset();
}

}  // namespace firestop::egress
