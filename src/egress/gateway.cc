#include "egress/gateway.h"

#include <algorithm>
#include <cstdlib>

#include "codec/address.h"
#include "egress/codes.h"
#include "egress/resolver.h"

namespace firestop::egress {

namespace {

// No rule allows anything.
class ClosedGuard final : public Guard {
 public:
  std::optional<Denial> name(std::string_view) override {
    Denial denial;
    denial.code = codes::kNoRule;
    denial.message = "no rule names this host";
    return denial;
  }
  ConnectionPlan connection(const Authority& to) override {
    return {ConnectionPlan::Use::kDeny, {}, *name(to.host)};
  }
  std::unique_ptr<Exchange> exchange(const Origin&) override { return nullptr; }
};

}  // namespace

Gateway::Gateway(Loop& loop, Recorder record) : loop_(loop), record_(std::move(record)), resolver_(loop) {}

Gateway::~Gateway() = default;

Result<std::unique_ptr<Gateway>> Gateway::make(Loop& loop, const ProcessConfig& config,
                                               const manifest::Manifest& policy, Recorder record) {
  std::unique_ptr<Gateway> gateway(new Gateway(loop, std::move(record)));
  gateway->connections_ = policy.limits.network.connections.value_or(Doors::kConnectionsUnlessSaid);
  gateway->readable_ = SystemResolver::files();
  gateway->guard_ = std::make_unique<ClosedGuard>();
  gateway->answers_ = std::make_unique<NameAnswers>(*gateway->guard_, gateway->book_, gateway->record_);
  TRY(gateway->reach_out(config));
  TRY(gateway->make_authority(policy));
  gateway->raw_ = std::make_unique<RawConnections>(loop, *gateway->dialer_, gateway->record_);
  gateway->carrier_ = std::make_unique<Carrier>(loop, Carrier::Parts{.guard = *gateway->guard_,
                                                                     .dialer = *gateway->dialer_,
                                                                     .authority = *gateway->authority_,
                                                                     .origin_tls = *gateway->origin_tls_,
                                                                     .raw = *gateway->raw_,
                                                                     .record = gateway->record_,
                                                                     .spend = {}});  // the tap is metered
  return gateway;
}

Result<void> Gateway::reach_out(const ProcessConfig& config) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (!value) return std::nullopt;
    return value;
  };
  TRY_ASSIGN(HostProxy proxy, HostProxy::from(environment));
  dialer_ = std::make_unique<HostDialer>(loop_, resolver_, std::move(proxy));
  TRY_ASSIGN(const std::string trust, read_host_trust(environment));
  TRY_ASSIGN(origin_tls_, OriginTls::make(trust, config.upstream_ca));
  return {};
}

// For the hosts whose TLS is opened.
Result<void> Gateway::make_authority(const manifest::Manifest& policy) {
  CertificateAuthority::Settings settings;
  for (const manifest::EgressRule& rule : policy.egress)
    if (!rule.host.empty() && rule.protocol == "http") settings.hosts.push_back(rule.host);
  TRY_ASSIGN(authority_, CertificateAuthority::make(std::move(settings)));
  return {};
}

codec::JsonObject Gateway::ready() const {
  return {{"authority", authority_->certificate()}, {"authority_hash", authority_->subject_hash()}};
}

void Gateway::open(GuestSockets sockets) {
  dns_ =
      std::make_unique<DnsServer>(loop_, std::move(sockets.dns_udp), std::move(sockets.dns_tcp), *answers_);
  doors_ = std::make_unique<Doors>(loop_, std::move(sockets.tcp), std::move(sockets.sink),
                                   Doors::Settings{
                                       .connections = connections_,
                                       .name_of = [this](const std::string& text) -> const std::string* {
                                         const auto address = codec::Address::parse(text);
                                         return address ? book_.name_of(*address) : nullptr;
                                       },
                                       .carry =
                                           [this](Arrived arrived) {
                                             carrier_->carry({.socket = std::move(arrived.socket),
                                                              .to = std::move(arrived.to),
                                                              .source_port = arrived.source_port,
                                                              .place = std::move(arrived.place)});
                                           },
                                       .record = record_,
                                   });
}

void Gateway::close() {
  doors_.reset();
  dns_.reset();
  carrier_.reset();
  raw_.reset();
}

}  // namespace firestop::egress
