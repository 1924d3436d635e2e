#include "egress/carrier.h"

#include <algorithm>

#include "egress/carrier_connection.h"

namespace firestop::egress {

Carrier::Carrier(Loop& loop, Parts parts)
    : loop_(loop),
      parts_(std::move(parts)),
      later_(loop),
      pool_(loop, parts_.dialer, parts_.origin_tls),
      holding_(parts_.most_held) {}

Carrier::~Carrier() {
  ending_ = true;
  relays_.clear();
  connections_.clear();
}

void Carrier::carry(Guest guest) {
  start(std::move(guest), Way::kTransparent);
}

void Carrier::carry_as_proxy(Guest guest) {
  start(std::move(guest), Way::kProxy);
}

void Carrier::start(Guest guest, Way way) {
  connections_.push_back(std::make_unique<Connection>(*this, std::move(guest), way));
  Connection& connection = *connections_.back();
  connection.place_in_list = std::prev(connections_.end());
  connection.start();
}

void Carrier::forget(Connection* connection) {
  const auto at = connection->place_in_list;
  later_.destroy(std::move(*at));
  connections_.erase(at);
}

void Carrier::relay(const Origin& origin, OriginPool::Wire wire, http::RequestHead head,
                    std::unique_ptr<http::ServerStream> stream, const Denial* refusal) {
  const auto at = relays_.emplace(relays_.end());
  const auto over = [this, at](ExchangeRelay*) {
    if (ending_) return;
    later_.destroy(std::move(*at));
    relays_.erase(at);
  };
  *at = std::make_unique<ExchangeRelay>(ExchangeRelay::Context{loop_, parts_.guard, pool_, parts_.record,
                                                               parts_.spend, parts_.times, holding_, over},
                                        origin, wire, std::move(head), std::move(stream), refusal);
  (*at)->start();
}

}  // namespace firestop::egress
