#include "egress/gateway.h"

#include <algorithm>

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

Gateway::Gateway(Loop& loop, Recorder record) : loop_(loop), record_(std::move(record)) {}

Gateway::~Gateway() = default;

Result<std::unique_ptr<Gateway>> Gateway::make(Loop& loop, const ProcessConfig&,
                                               const manifest::Manifest& policy, Recorder record) {
  std::unique_ptr<Gateway> gateway(new Gateway(loop, std::move(record)));
  gateway->connections_ = policy.limits.network.connections.value_or(Doors::kConnectionsUnlessSaid);
  gateway->readable_ = SystemResolver::files();
  gateway->guard_ = std::make_unique<ClosedGuard>();
  gateway->answers_ = std::make_unique<NameAnswers>(*gateway->guard_, gateway->book_, gateway->record_);
  return gateway;
}

codec::JsonObject Gateway::ready() const {
  return {{"authority", ""}, {"authority_hash", ""}};
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
}

void Gateway::carry(Arrived arrived) {
  const ConnectionPlan plan = guard_->connection(arrived.to);
  Crossing crossing;
  crossing.kind = Crossing::Kind::kConnection;
  crossing.verdict = "denied";
  crossing.code = plan.denial.code;
  crossing.rule = plan.denial.rule;
  crossing.scheme = "tcp";
  crossing.host = arrived.to.host;
  crossing.port = arrived.to.port;
  crossing.address = arrived.address;
  crossing.source_port = arrived.source_port;
  record_(crossing);
  reset_connection(std::move(arrived.socket));
}

}  // namespace firestop::egress
