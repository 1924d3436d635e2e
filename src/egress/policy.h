// What may be talked to, by the rules of the manifest alone: no network, no state, no credential's value.
// Each answer names the rule that decided, or, for a denial, the one that came nearest.
//
// A request is allowed if any rule allows it. Of several that do, the first with a credential counts, else
// the first. Where a host has rules with `git`, only these decide about requests of git, however wide another
// is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/address.h"
#include "codec/json.h"
#include "egress/guard.h"
#include "http/message.h"
#include "manifest/manifest.h"

namespace firestop::egress {

// A rule, made ready to be compared with.
struct Rule {
  explicit Rule(manifest::EgressRule rule, size_t index);

  bool has_host(std::string_view host) const;  // canonical name
  bool has_port(uint16_t port) const;
  bool has_method(std::string_view method) const;  // HEAD follows GET

  manifest::EgressRule says;
  std::string name;                       // "egress[2]"
  std::vector<std::string> paths;         // normal
  std::optional<codec::Network> network;  // of cidr
  std::shared_ptr<const std::string> ca;  // or null
};

// What of a repository is asked for, if the path is one of the three of git's smart protocol.
enum class GitRequest { kNone, kRefs, kUploadPack, kReceivePack };
GitRequest git_request(const Rule& rule, std::string_view path);

struct Asked {
  std::string_view scheme;  // "https", "http"
  http::Authority to;
  std::string_view method;
  std::string_view target;  // "/path?query" or "*"
  bool websocket = false;
  const http::Headers* headers = nullptr;  // null: not known, as in `firestop egress test`
};

struct Verdict {
  const Rule* rule = nullptr;  // that allows it; else the nearest, or null
  std::optional<Denial> denial;
  bool allowed() const { return !denial; }
};

class Policy {
 public:
  explicit Policy(const std::vector<manifest::EgressRule>& rules);

  Verdict name(std::string_view host) const;
  // Before anything was read: http, passed through, tcp, or denied.
  ConnectionPlan connection(const Authority& to) const;
  Verdict request(const Asked& asked) const;

  // The rules that a credential goes by.
  std::vector<const Rule*> rules_of(std::string_view credential) const;
  // Whether requests to the host can carry a credential.
  bool has_credential(std::string_view host) const;
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
};

}  // namespace firestop::egress
