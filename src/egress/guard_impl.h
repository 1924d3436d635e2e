// The guard that runs: the policy's rules, credentials, and git's own rules, joined.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "credentials/placeholder.h"
#include "credentials/vault.h"
#include "egress/guard.h"
#include "egress/mapping.h"
#include "manifest/manifest.h"

namespace firestop::egress {

struct GuardParts {
  std::vector<manifest::EgressRule> rules;
  std::vector<manifest::Credential> credentials;
  std::vector<credentials::Placeholder> placeholders;  // of these credentials
  credentials::Vault* vault = nullptr;  // outlives the guard and its exchanges; null: no credentials
  std::vector<Mapping> connect_to;
};

std::unique_ptr<Guard> make_guard(GuardParts parts);

}  // namespace firestop::egress
