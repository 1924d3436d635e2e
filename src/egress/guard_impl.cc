#include "egress/guard_impl.h"

#include "egress/guard_exchange.h"

namespace firestop::egress {
namespace {

class PolicyGuard : public Guard {
 public:
  explicit PolicyGuard(GuardParts parts) : state_(std::move(parts)) {}

  std::optional<Denial> name(std::string_view host) override {
    if (const auto* credential = state_.detector.find_in_name(host))
      return elsewhere(*credential, "a name that was asked for", "");
    return state_.policy.name(host).denial;
  }

  ConnectionPlan connection(const Authority& to) override {
    if (const auto* credential = state_.detector.find_in_name(to.host)) {
      ConnectionPlan plan;
      plan.denial = elsewhere(*credential, "the host's name", "");
      return plan;
    }
    auto plan = state_.policy.connection(to);
    if (plan.use != ConnectionPlan::Use::kDeny) state_.map(plan.route);
    return plan;
  }

  std::unique_ptr<Exchange> exchange(const Origin& origin) override { return make_exchange(state_, origin); }

  std::optional<Denial> alarm_in_server_name(std::string_view name) override {
    const auto* credential = state_.detector.find_in_name(name);
    return credential ? std::optional(elsewhere(*credential, "the TLS server name", "")) : std::nullopt;
  }

  std::optional<Denial> alarm_in(const http::RequestHead& head) override {
    return egress::alarm_in(state_.detector, head, "");
  }

 private:
  GuardState state_;
};

}  // namespace

std::unique_ptr<Guard> make_guard(GuardParts parts) {
  return std::make_unique<PolicyGuard>(std::move(parts));
}

}  // namespace firestop::egress
