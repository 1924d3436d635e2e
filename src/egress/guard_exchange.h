// One request and its answer under the rules.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "credentials/detector.h"
#include "credentials/inject.h"
#include "credentials/scrubber.h"
#include "credentials/sigv4.h"
#include "credentials/vault.h"
#include "egress/guard.h"
#include "egress/guard_impl.h"
#include "egress/policy.h"

namespace firestop::egress {

// What the exchanges of one sandbox share; outlives them.
class GuardState {
 public:
  explicit GuardState(GuardParts parts);

  const manifest::Credential* credential(std::string_view name) const;
  const std::string& placeholder(std::string_view credential) const;  // not the one of a key's id
  credentials::AwsKey placeholder_key(const manifest::Credential& credential) const;  // of sigv4
  // Puts placeholders back for the values that were given out for this host's rules.
  std::shared_ptr<const credentials::Scrubber> scrubber(std::string_view host);
  void map(Route& route) const;  // by the operator's connect_to

  Policy policy;
  credentials::Detector detector;
  credentials::Vault* vault;

 private:
  std::vector<manifest::Credential> credentials_;
  void add_known(const manifest::Credential& credential, const credentials::SharedSecret& value,
                 std::vector<credentials::Known>& known) const;

  std::vector<credentials::Placeholder> placeholders_;
  std::vector<Mapping> connect_to_;
  struct Cached {
    uint64_t changes = 0;  // of the vault, when it was made
    std::shared_ptr<const credentials::Scrubber> scrubber;
  };
  std::map<std::string, Cached, std::less<>> scrubbers_;  // by host; hosts that rules with credentials have
};

std::unique_ptr<Exchange> make_exchange(GuardState& state, const Origin& origin);

// A placeholder in a head, wherever in it; or nothing.
std::optional<Denial> alarm_in(credentials::Detector& detector, const http::RequestHead& head,
                               const std::string& rule);
// A placeholder where it does not belong.
Denial elsewhere(const std::string& credential, const std::string& where, const std::string& rule);

}  // namespace firestop::egress
