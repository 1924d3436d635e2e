#include <algorithm>

#include "egress/guard_exchange.h"

namespace firestop::egress {
namespace {

constexpr size_t kMostHosts = 1000;  // whose scrubbers are kept: names below a wildcard have no end

}  // namespace

GuardState::GuardState(GuardParts parts)
    : policy(parts.rules),
      detector(parts.placeholders),
      vault(parts.vault),
      credentials_(std::move(parts.credentials)),
      placeholders_(std::move(parts.placeholders)),
      connect_to_(std::move(parts.connect_to)) {}

const manifest::Credential* GuardState::credential(std::string_view name) const {
  for (const auto& one : credentials_)
    if (!name.empty() && one.name == name) return &one;
  return nullptr;
}

const std::string& GuardState::placeholder(std::string_view name) const {
  static const std::string kNobody = "\x7f";  // in no request: its codec refuses control characters
  const auto* one = credential(name);
  for (const auto& placeholder : placeholders_)
    if (one && placeholder.credential == name && placeholder.variable == one->env) return placeholder.text;
  return kNobody;
}

credentials::AwsKey GuardState::placeholder_key(const manifest::Credential& credential) const {
  credentials::AwsKey out("\x7f", placeholder(credential.name));
  for (const auto& one : placeholders_)
    if (one.credential == credential.name && !one.variable.empty()) {
      if (one.variable == credential.key_id) out.id = one.text;
      if (one.variable == credential.session_token) out.token = one.text;
    }
  return out;
}

void GuardState::add_known(const manifest::Credential& credential, const credentials::SharedSecret& value,
                           std::vector<credentials::Known>& known) const {
  if (credential.inject != "sigv4") {
    known.push_back({value, credential.user, placeholder(credential.name)});
    return;
  }
  const auto key = credentials::parse_aws_key(value->reveal());
  if (!key) return;
  const auto theirs = placeholder_key(credential);
  const auto add = [&](const std::string& text, const std::string& instead) {
    auto secret = credentials::Secret::copy(text);
    if (text.size() >= credentials::kLeastSecret && secret)
      known.push_back({std::make_shared<const credentials::Secret>(std::move(*secret)), "", instead});
  };
  add(key->id, theirs.id);
  add(key->secret, theirs.secret);
  add(key->token, theirs.token.empty() ? theirs.secret : theirs.token);
}

std::shared_ptr<const credentials::Scrubber> GuardState::scrubber(std::string_view host) {
  const uint64_t changes = vault ? vault->changes() : 0;
  if (scrubbers_.size() > kMostHosts) scrubbers_.clear();
  const auto found = scrubbers_.find(host);
  if (found != scrubbers_.end() && found->second.changes == changes) return found->second.scrubber;
  std::vector<credentials::Known> known;
  for (const auto& one : credentials_) {
    const auto rules = policy.rules_of(one.name);
    const auto has_host = [&](const Rule* rule) { return rule->has_host(host); };
    if (!vault || std::none_of(rules.begin(), rules.end(), has_host)) continue;
    for (const auto& value : vault->given(one.name)) add_known(one, value, known);
  }
  auto& cached = scrubbers_[std::string(host)];
  cached = {changes, std::make_shared<credentials::Scrubber>(known)};
  return cached.scrubber;
}

void GuardState::map(Route& route) const {
  for (const auto& mapping : connect_to_) {
    if (!(mapping.from == route.to)) continue;
    route.connect_to = mapping.to;
    route.private_addresses = true;
    return;
  }
}

}  // namespace firestop::egress
