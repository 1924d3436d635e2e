#include "egress/gateway.h"

#include <cstdlib>

#include "codec/address.h"
#include "credentials/source_process.h"
#include "egress/host_dialer.h"
#include "egress/link.h"

namespace firestop::egress {
namespace {

// The operator's own, as this process was started with.
std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  return value;
}

// Those whose TLS is opened.
std::vector<std::string> hosts_of(const GuardParts& parts) {
  std::vector<std::string> out;
  for (const auto& rule : parts.rules)
    if (!rule.host.empty() && rule.protocol == "http") out.push_back(rule.host);
  return out;
}

}  // namespace

Gateway::Gateway(Loop& loop, Recorder record) : loop_(loop), record_(std::move(record)) {}

Gateway::~Gateway() {
  close();
}

Result<std::unique_ptr<Gateway>> Gateway::make(Loop& loop, ProcessConfig config, Recorder record) {
  std::unique_ptr<Gateway> gateway(new Gateway(loop, std::move(record)));
  gateway->connections_ = config.connections;
  CertificateAuthority::Settings settings;
  settings.hosts = hosts_of(config.guard);
  TRY_ASSIGN(gateway->authority_, CertificateAuthority::make(std::move(settings)));
  TRY(gateway->trust(config.upstream_ca));
  if (config.has_sources) {
    gateway->vault_ = credentials::make_source_vault(loop, UniqueFd(kSourcesFd));
    config.guard.vault = gateway->vault_.get();
  }
  gateway->guard_ = make_guard(std::move(config.guard));
  gateway->answers_ = std::make_unique<NameAnswers>(*gateway->guard_, gateway->book_, gateway->record_);
  TRY(gateway->dial());
  return gateway;
}

Result<void> Gateway::trust(const std::string& operators) {
  auto host = read_host_trust(variable);
  // A host without certificates of its own trusts those that its operator names.
  if (!host && operators.empty()) return tl::unexpected(host.error());
  TRY_ASSIGN(origins_, OriginTls::make(host ? *host : std::string(), operators));
  return {};
}

Result<void> Gateway::dial() {
  TRY_ASSIGN(HostProxy proxy, HostProxy::from(variable));
  readable_ = SystemResolver::files();
  resolver_ = std::make_unique<SystemResolver>(loop_);
  dialer_ = std::make_unique<HostDialer>(loop_, *resolver_, std::move(proxy));
  raw_ = std::make_unique<RawConnections>(loop_, *dialer_, record_);
  carrier_ = std::make_unique<Carrier>(
      loop_, Carrier::Parts{
                 .guard = *guard_,
                 .dialer = *dialer_,
                 .authority = *authority_,
                 .origin_tls = *origins_,
                 .raw = *raw_,
                 .record = record_,
                 .spend = {},
             });
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
                                       .carry = [this](Arrived arrived) { carry(std::move(arrived)); },
                                       .record = record_,
                                   });
}

void Gateway::close() {
  doors_.reset();
  dns_.reset();
  carrier_.reset();
  raw_.reset();
}

void Gateway::carry(Arrived arrived) {
  carrier_->carry({.socket = std::move(arrived.socket),
                   .to = std::move(arrived.to),
                   .source_port = arrived.source_port,
                   .place = std::move(arrived.place)});
}

}  // namespace firestop::egress
