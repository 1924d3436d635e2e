#include "egress/policy.h"

#include <algorithm>

#include "codec/yaml.h"
#include "egress/codes.h"
#include "egress/request_path.h"
#include "manifest/cover.h"
#include "manifest/words.h"

namespace firestop::egress {
namespace {

// Headers by which servers take another method, or another path, than those of the request line.
constexpr std::string_view kMethodHeaders[] = {"X-HTTP-Method-Override", "X-HTTP-Method",
                                               "X-Method-Override"};
constexpr std::string_view kPathHeaders[] = {"X-Original-URL", "X-Rewrite-URL", "X-Override-URL"};
constexpr const char* kAsk = "If it is needed, ask whoever wrote the manifest ";

std::string place_of(const Authority& to) {
  const bool v6 = to.host.find(':') != std::string::npos;
  return (v6 ? "[" + to.host + "]" : to.host) + ":" + std::to_string(to.port);
}

Denial deny(const char* code, const Rule* nearest, std::string message, std::string what_to_do) {
  Denial out;
  out.code = code;
  out.rule = nearest ? nearest->name : "";
  out.message = std::move(message);
  out.what_to_do = std::move(what_to_do);
  return out;
}

// How far a request came with a rule; the rule where it came furthest is the nearest.
enum class Came { kNowhere, kHost, kPort, kPath, kMethod, kHeaders, kWebsocket, kAllowed };

struct Try {
  Came came = Came::kNowhere;
  const Rule* rule = nullptr;
};

// The path as far as rules look at it.
struct Path {
  RequestPath read;
  std::string shown;
};

bool has_path(const Rule& rule, const Path& path) {
  if (rule.says.git) return git_request(rule, path.read.path) != GitRequest::kNone;
  if (rule.paths.empty()) return true;
  return path.read.why_not.empty() && std::any_of(rule.paths.begin(), rule.paths.end(), [&](const auto& one) {
           return path_matches(one, path.read.path);
         });
}

// CGI and its heirs read X_Name as X-Name.
bool same_to_cgi(std::string name, std::string_view other) {
  std::replace(name.begin(), name.end(), '_', '-');
  return http::same_name(name, other);
}

// Headers that would make the origin do something else than what was allowed.
bool has_other_meaning(const Rule& rule, const http::Headers& headers) {
  const auto has = [&](std::string_view name) {
    return std::any_of(headers.begin(), headers.end(),
                       [&](const http::Header& header) { return same_to_cgi(header.name, name); });
  };
  if (!rule.paths.empty() || rule.says.git)
    if (std::any_of(std::begin(kPathHeaders), std::end(kPathHeaders), has)) return true;
  if (rule.says.methods.empty() && !rule.says.git) return false;
  return std::any_of(headers.begin(), headers.end(), [&](const http::Header& header) {
    return std::any_of(std::begin(kMethodHeaders), std::end(kMethodHeaders), [&](std::string_view name) {
      return same_to_cgi(header.name, name) && (rule.says.git || !rule.has_method(header.value));
    });
  });
}

Came come(const Rule& rule, const Asked& asked, const Path& path) {
  if (!rule.has_host(asked.to.host)) return Came::kNowhere;
  if (!rule.has_port(asked.to.port) || rule.says.protocol != "http") return Came::kHost;
  if (!has_path(rule, path)) return Came::kPort;
  if (!rule.has_method(asked.method)) return Came::kPath;
  if (asked.headers && has_other_meaning(rule, *asked.headers)) return Came::kMethod;
  if (asked.websocket && !rule.says.websocket) return Came::kHeaders;
  return Came::kAllowed;
}

// Whoever grants a repository ref by ref does not mean to grant it whole by another rule of the same host. Of
// a path that has no one form nobody can say that it is none of git.
bool decided_by_git(const std::vector<Rule>& rules, const Authority& to, const Path& path) {
  const bool has_git = std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) {
    return rule.says.git && rule.has_host(to.host) && rule.has_port(to.port);
  });
  if (!has_git) return false;
  // As a server sees it that undoes the most: escapes, slashes in a row.
  std::string lower = unescaped(path.read.path);
  for (size_t at = 0; (at = lower.find("//")) != std::string::npos;) lower.erase(at, 1);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  const auto has = [&](const char* part) { return lower.find(part) != std::string::npos; };
  return !path.read.why_not.empty() || has("/info/refs") || has("/git-upload-pack") ||
         has("/git-receive-pack");
}

Denial no_rule(const Authority& to) {
  return deny(codes::kNoRule, nullptr, "no rule of the sandbox allows " + place_of(to),
              std::string(kAsk) + "for a rule with host: " + to.host);
}

Denial why_not(const Try& nearest, const Asked& asked, const Path& path) {
  const Rule* rule = nearest.rule;
  if (!rule) return no_rule(asked.to);
  const std::string place = place_of(asked.to);
  const std::string method(asked.method);
  const std::string rule_has = rule->name + " has ";
  switch (nearest.came) {
    case Came::kHost:
      if (rule->says.protocol != "http")
        return deny(codes::kProtocol, rule, place + " may be used by " + rule->says.protocol + " only",
                    std::string(kAsk) + "for protocol: http in " + rule->name);
      return deny(codes::kNoRule, rule,
                  "port " + std::to_string(asked.to.port) + " of " + asked.to.host + " is not allowed; " +
                      rule_has + manifest::ports_words(rule->says.ports),
                  std::string(kAsk) + "for the port in " + rule->name);
    case Came::kPort:
      if (!path.read.why_not.empty())
        return deny(codes::kPath, rule,
                    "the path " + path.read.why_not + ", which servers read in several ways",
                    "Write the path in its shortest form, without '.', '..' and '//'.");
      if (rule->says.git)
        return deny(codes::kGitRepository, rule,
                    path.shown + " is no request of git for the repository " + rule->says.git->repository,
                    "Use git with that repository, or " + std::string("ask for a rule with this path."));
      return deny(codes::kPath, rule,
                  path.shown + " is not allowed on " + place + "; " + rule_has +
                      manifest::join_words(rule->says.paths, " "),
                  std::string(kAsk) + "for the path in " + rule->name);
    case Came::kPath:
      return deny(codes::kMethod, rule,
                  method + " is not allowed for " + path.shown + " on " + place +
                      (rule->says.git ? "" : "; " + rule_has + manifest::join_words(rule->says.methods, " ")),
                  std::string(kAsk) + "for the method in " + rule->name);
    case Came::kMethod:
      return deny(codes::kMethod, rule,
                  "a header asks " + place + " for another method or path than the request does",
                  "Leave out X-HTTP-Method-Override, X-Original-URL and headers like them.");
    case Came::kHeaders:
      return deny(codes::kProtocol, rule, "a websocket to " + place + " is not allowed by " + rule->name,
                  std::string(kAsk) + "for websocket: true in " + rule->name);
    case Came::kNowhere:
    case Came::kWebsocket:
    case Came::kAllowed:
      break;
  }
  return no_rule(asked.to);
}

}  // namespace

Rule::Rule(manifest::EgressRule rule, size_t index)
    : says(std::move(rule)), name(says.name.empty() ? codec::item_path("egress", index) : says.name) {
  for (const auto& path : says.paths) paths.push_back(normal_pattern(path));
  if (!says.cidr.empty()) network = codec::Network::parse(says.cidr);
  if (!says.ca.empty()) ca = std::make_shared<const std::string>(says.ca);
}

bool Rule::has_host(std::string_view host) const {
  return !says.host.empty() && manifest::host_covers(says.host, host);
}

bool Rule::has_port(uint16_t port) const {
  return std::find(says.ports.begin(), says.ports.end(), port) != says.ports.end();
}

bool Rule::has_method(std::string_view method) const {
  if (method == "CONNECT" || method == "TRACE") return false;
  const auto has = [&](std::string_view one) {
    return std::find(says.methods.begin(), says.methods.end(), one) != says.methods.end();
  };
  if (says.git) return method == "GET" || method == "POST" || method == "HEAD";
  return says.methods.empty() || has(method) || (method == "HEAD" && has("GET"));
}

GitRequest git_request(const Rule& rule, std::string_view path) {
  if (!rule.says.git || !path.starts_with('/')) return GitRequest::kNone;
  path.remove_prefix(1);
  const std::string& repository = rule.says.git->repository;
  if (!path.starts_with(repository)) return GitRequest::kNone;
  path.remove_prefix(repository.size());
  if (path.starts_with(".git/") && !repository.ends_with(".git")) path.remove_prefix(4);
  if (path == "/info/refs") return GitRequest::kRefs;
  if (path == "/git-upload-pack") return GitRequest::kUploadPack;
  if (path == "/git-receive-pack") return GitRequest::kReceivePack;
  return GitRequest::kNone;
}

Policy::Policy(const std::vector<manifest::EgressRule>& rules) {
  for (size_t at = 0; at < rules.size(); ++at) rules_.emplace_back(rules[at], at);
}

Verdict Policy::name(std::string_view host) const {
  for (const auto& rule : rules_)
    if (rule.has_host(host)) return {&rule, {}};
  return {nullptr, no_rule({std::string(host), 443})};
}

ConnectionPlan Policy::connection(const Authority& to) const {
  using Use = ConnectionPlan::Use;
  const auto address = codec::Address::parse(to.host);
  const Rule* nearest = nullptr;
  const Rule* found = nullptr;
  const Rule* wide = nullptr;
  for (const auto& rule : rules_) {
    if (address && rule.network && rule.network->contains(*address) &&
        !codec::reaches(*rule.network, *address))
      wide = &rule;
    const bool here =
        address ? rule.network && codec::reaches(*rule.network, *address) : rule.has_host(to.host);
    if (!here) continue;
    if (!nearest) nearest = &rule;
    if (!rule.has_port(to.port)) continue;
    // `check` refuses two protocols for one place; should they come all the same, none of them counts.
    if (found && found->says.protocol != rule.says.protocol)
      return {Use::kDeny, {}, deny(codes::kProtocol, &rule, "two rules disagree about " + place_of(to), "")};
    if (!found) found = &rule;
  }
  ConnectionPlan plan;
  if (!found) {
    plan.denial = no_rule(to);
    if (address)
      plan.denial.what_to_do =
          "Use the name instead of the address; " + std::string("names are what rules allow.");
    if (wide && address && !nearest)
      plan.denial = deny(codes::kPrivateAddress, wide,
                         to.host + " is " + codec::range_of(*address).what + ", which no network includes",
                         std::string(kAsk) + "for a rule with cidr: " + to.host + "/" +
                             std::to_string(address->bits()) + " and private: true");
    if (nearest) {
      plan.denial.rule = nearest->name;
      plan.denial.message += "; " + nearest->name + " has port " + manifest::ports_words(nearest->says.ports);
    }
    return plan;
  }
  const auto& protocol = found->says.protocol;
  plan.use = protocol == "http" ? Use::kHttp : protocol == "tls" ? Use::kPassThrough : Use::kTcp;
  plan.route.to = to;
  plan.route.tls = protocol != "tcp";
  plan.route.private_addresses = found->says.private_addresses;
  plan.route.rule = found->name;
  plan.route.ca = found->ca;
  return plan;
}

Verdict Policy::request(const Asked& asked) const {
  Path path{read_request_path(asked.target), {}};
  path.shown = path.read.why_not.empty() ? path.read.path : "this path";
  if (path.shown.size() > 200) path.shown = path.shown.substr(0, 200) + "...";
  Try nearest;
  const Rule* allowed = nullptr;
  const bool only_git = decided_by_git(rules_, asked.to, path);
  for (const auto& rule : rules_) {
    if (only_git && !rule.says.git) continue;
    const Came came = come(rule, asked, path);
    if (came > nearest.came) nearest = {came, &rule};
    if (came != Came::kAllowed) continue;
    if (!allowed || (allowed->says.credential.empty() && !rule.says.credential.empty())) allowed = &rule;
  }
  if (!allowed) return {nearest.rule, why_not(nearest, asked, path)};
  if (asked.scheme == "http" && asked.to.port == 443)
    return {allowed, deny(codes::kPlainText, allowed, "port 443 is spoken to over TLS only",
                          "Use https://, or port 80 where the rule has it.")};
  return {allowed, {}};
}

std::vector<const Rule*> Policy::rules_of(std::string_view credential) const {
  std::vector<const Rule*> out;
  for (const auto& rule : rules_)
    if (!credential.empty() && rule.says.credential == credential) out.push_back(&rule);
  return out;
}

bool Policy::has_credential(std::string_view host) const {
  return std::any_of(rules_.begin(), rules_.end(),
                     [&](const Rule& rule) { return !rule.says.credential.empty() && rule.has_host(host); });
}

}  // namespace firestop::egress
