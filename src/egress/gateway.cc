#include "egress/gateway.h"

#include "codec/address.h"
#include "credentials/source_process.h"
#include "egress/link.h"

namespace firestop::egress {
namespace {

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
  auto hosts = hosts_of(config.guard);
  if (config.has_sources) {
    gateway->vault_ = credentials::make_source_vault(loop, UniqueFd(kSourcesFd));
    config.guard.vault = gateway->vault_.get();
  }
  gateway->guard_ = make_guard(std::move(config.guard));
  gateway->answers_ = std::make_unique<NameAnswers>(*gateway->guard_, gateway->book_, gateway->record_);
  TRY_ASSIGN(gateway->way_out_,
             WayOut::make(loop, *gateway->guard_,
                          {.hosts = std::move(hosts), .upstream_ca = std::move(config.upstream_ca)},
                          gateway->record_));
  gateway->readable_ = SystemResolver::files();
  return gateway;
}

codec::JsonObject Gateway::ready() const {
  const auto& authority = way_out_->authority();
  return {{"authority", authority.certificate()}, {"authority_hash", authority.subject_hash()}};
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
  if (way_out_) way_out_->close();
}

void Gateway::carry(Arrived arrived) {
  way_out_->carrier().carry({.socket = std::move(arrived.socket),
                             .to = std::move(arrived.to),
                             .source_port = arrived.source_port,
                             .place = std::move(arrived.place)});
}

}  // namespace firestop::egress
