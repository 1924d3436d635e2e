#include "manifest/diff_egress.h"

#include <algorithm>
#include <optional>

#include "manifest/cover.h"
#include "manifest/explain_facts.h"
#include "manifest/words.h"

namespace firestop::manifest {
namespace {

int rank(const std::string& protocol) {  // how little of it can be read on its way
  return protocol == "http" ? 0 : protocol == "tls" ? 1 : 2;
}

bool same_repository(const EgressRule& a, const EgressRule& b) {
  return a.git && b.git ? a.git->repository == b.git->repository : !a.git && !b.git;
}

std::string rule_words(const EgressRule& rule) {
  std::string out = request_words(rule);
  if (!rule.credential.empty()) out += ", with credential " + rule.credential;
  return out;
}

class EgressDiffer {
 public:
  EgressDiffer(const Manifest& before, const Manifest& after)
      : before_(before.egress),
        after_(after.egress),
        partner_(after_.size()),
        taken_(before_.size(), false) {}

  std::vector<Change> run() {
    if (before_.empty() != after_.empty())
      changes_.push_back({before_.empty() ? Effect::kOpens : Effect::kCloses, "egress",
                          before_.empty() ? "no network device" : "a network device",
                          before_.empty() ? "a network device" : "no network device",
                          before_.empty()
                              ? "the machine gets a network device, which ends at Firestop's proxy"
                              : "the machine has no network any more",
                          "network"});
    pair_up();
    for (size_t at = 0; at < after_.size(); ++at) {
      crossing_ = "rule " + std::to_string(at);
      if (const auto& partner = partner_[at])
        compare(before_[*partner], after_[at]);
      else
        rule_added(after_[at]);
    }
    for (size_t at = 0; at < before_.size(); ++at) {
      crossing_ = "old rule " + std::to_string(at);
      if (!taken_[at]) rule_removed(before_[at]);
    }
    return std::move(changes_);
  }

 private:
  // Which old rule became which new one: the same one, else one with the same destination, else one whose
  // destination holds the other's.
  void pair_up() {
    pair_by([](const auto& a, const auto& b) { return same_rule(a, b); });
    pair_by([](const auto& a, const auto& b) {
      return same_kind(a, b) && a.host == b.host && a.cidr == b.cidr && a.ports == b.ports &&
             same_repository(a, b);
    });
    pair_by([](const auto& a, const auto& b) {
      return same_kind(a, b) && a.host == b.host && a.cidr == b.cidr && same_repository(a, b);
    });
    pair_by([](const auto& a, const auto& b) {
      return (destination_covers(a, b) || destination_covers(b, a)) && same_repository(a, b);
    });
  }

  template <typename Same>
  void pair_by(Same same) {
    for (size_t at = 0; at < after_.size(); ++at)
      for (size_t old = 0; old < before_.size() && !partner_[at]; ++old)
        if (!taken_[old] && same(before_[old], after_[at])) {
          partner_[at] = old;
          taken_[old] = true;
        }
  }

  void add(Effect effect, const EgressRule& rule, const char* member, const std::string& before,
           const std::string& after, std::string words) {
    std::string field = "egress[" + (rule.host.empty() ? rule.cidr : rule.host) + "]";
    if (*member != '\0') field += std::string(".") + member;
    changes_.push_back(
        {effect, one_line(field), one_line(before), one_line(after), std::move(words), crossing_});
  }

  static bool allowed_by(const std::vector<EgressRule>& rules, const EgressRule& rule) {
    return std::any_of(rules.begin(), rules.end(),
                       [&](const auto& other) { return rule_covers(other, rule); });
  }

  void rule_added(const EgressRule& rule) {
    const bool known = allowed_by(before_, rule);
    add(known ? Effect::kChanges : Effect::kOpens, rule, "", "", rule_words(rule),
        known ? "says again what was allowed before"
              : "may be talked to, on port " + ports_words(rule.ports) +
                    (rule.credential.empty() ? "" : ", with a secret of yours"));
  }

  void rule_removed(const EgressRule& rule) {
    const bool still = allowed_by(after_, rule);
    add(still ? Effect::kChanges : Effect::kCloses, rule, "", rule_words(rule), "",
        still ? "another rule still allows it" : "no longer talked to, on port " + ports_words(rule.ports));
  }

  void compare(const EgressRule& old, const EgressRule& rule) {
    if (old.host != rule.host || old.cidr != rule.cidr) {
      const bool narrower = destination_covers(old, rule);
      add(narrower ? Effect::kCloses : Effect::kOpens, rule, rule.cidr.empty() ? "host" : "cidr",
          old.host + old.cidr, rule.host + rule.cidr,
          narrower ? "fewer hosts may be talked to" : "more hosts may be talked to");
    }
    if (old.protocol != rule.protocol) {
      const bool less_read = rank(rule.protocol) > rank(old.protocol);
      add(less_read ? Effect::kOpens : Effect::kCloses, rule, "protocol", old.protocol, rule.protocol,
          less_read ? "what is said is no longer read on its way" : "what is said is read on its way");
    }
    compare_ports(old, rule);
    compare_list(rule, "methods", old.methods, rule.methods, "every method");
    compare_list(rule, "paths", old.paths, rule.paths, "every path");
    compare_flag(rule, "private", old.private_addresses, rule.private_addresses, "private addresses, too",
                 "no private addresses");
    compare_flag(rule, "websocket", old.websocket, rule.websocket,
                 "messages of a websocket, which no rule reads", "no websocket");
    compare_flag(rule, "plain_text", old.plain_text, rule.plain_text, "the credential goes over http://, too",
                 "the credential over TLS only");
    compare_placeholders(old, rule);
    if (old.ca != rule.ca)
      add(rule.ca.empty() ? Effect::kCloses : Effect::kOpens, rule, "ca",
          old.ca.empty() ? "" : "certificates", rule.ca.empty() ? "" : "certificates",
          rule.ca.empty() ? "the host's own certificates only"
                          : "who has these certificates may stand for it");
    if (old.git && rule.git) {
      compare_flag(rule, "git.fetch", old.git->fetch, rule.git->fetch,
                   "may fetch from " + rule.git->repository, "may no longer fetch");
      compare_grants(rule, "git.push", old.git->push, rule.git->push, "pushed", any_covers);
      compare_flag(rule, "git.delete", old.git->deletes, rule.git->deletes, "may delete what it may push",
                   "may no longer delete");
      compare_grants(rule, "git.push_options", old.git->options, rule.git->options, "given as push options",
                     option_covered);
    }
    compare_credential(old, rule);
  }

  void compare_ports(const EgressRule& old, const EgressRule& rule) {
    const auto without = [](std::vector<uint16_t> ports, const std::vector<uint16_t>& others) {
      std::erase_if(ports, [&](uint16_t port) {
        return std::find(others.begin(), others.end(), port) != others.end();
      });
      return ports;
    };
    const auto more = without(rule.ports, old.ports), less = without(old.ports, rule.ports);
    if (!more.empty())
      add(Effect::kOpens, rule, "ports", ports_words(old.ports), ports_words(rule.ports),
          "port " + ports_words(more) + " may be talked to");
    if (!less.empty())
      add(Effect::kCloses, rule, "ports", ports_words(old.ports), ports_words(rule.ports),
          "port " + ports_words(less) + " no more");
  }

  // An empty list is every one here.
  void compare_list(const EgressRule& rule, const char* member, const std::vector<std::string>& old,
                    const std::vector<std::string>& now, const char* every) {
    const auto all = [&](const auto& words) { return words.empty() ? every : join_words(words, " "); };
    std::vector<std::string> more, less;
    if (!old.empty() && now.empty()) more.emplace_back(every);
    if (old.empty() && !now.empty()) less.emplace_back("all others");
    if (!old.empty() && !now.empty()) {
      for (const auto& word : now)
        if (!any_covers(old, word)) more.push_back(word);
      for (const auto& word : old)
        if (!any_covers(now, word)) less.push_back(word);
    }
    if (!more.empty())
      add(Effect::kOpens, rule, member, all(old), all(now), join_words(more, " ") + " allowed");
    if (!less.empty())
      add(Effect::kCloses, rule, member, all(old), all(now), join_words(less, " ") + " no longer allowed");
    if (more.empty() && less.empty() && !std::is_permutation(old.begin(), old.end(), now.begin(), now.end()))
      add(Effect::kChanges, rule, member, all(old), all(now), "the same in other words");
  }

  // An empty list is none here.
  template <typename Covered>
  void compare_grants(const EgressRule& rule, const char* member, const std::vector<std::string>& old,
                      const std::vector<std::string>& now, const std::string& what, Covered covered) {
    const auto all = [](const auto& words) {
      return words.empty() ? std::string("none") : join_words(words, " ");
    };
    const auto beyond = [&](std::vector<std::string> words, const std::vector<std::string>& others) {
      std::erase_if(words, [&](const auto& word) { return !others.empty() && covered(others, word); });
      return words;
    };
    const auto more = beyond(now, old), less = beyond(old, now);
    if (!more.empty())
      add(Effect::kOpens, rule, member, all(old), all(now), join_words(more, " ") + " may be " + what);
    if (!less.empty())
      add(Effect::kCloses, rule, member, all(old), all(now),
          join_words(less, " ") + " may no longer be " + what);
  }

  void compare_flag(const EgressRule& rule, const char* member, bool old, bool now, const std::string& opens,
                    const std::string& closes) {
    if (old == now) return;
    add(now ? Effect::kOpens : Effect::kCloses, rule, member, old ? "true" : "false", now ? "true" : "false",
        now ? opens : closes);
  }

  void compare_placeholders(const EgressRule& old, const EgressRule& rule) {
    const std::string &before = old.placeholders_in_body, &now = rule.placeholders_in_body;
    if (before == now) return;
    const bool opens = now == "all" || before.empty();
    add(opens ? Effect::kOpens : Effect::kCloses, rule, "placeholders_in_body",
        before.empty() ? "none" : before, now.empty() ? "none" : now,
        now.empty() ? "a placeholder in a body is stopped" : body_words(rule));
  }

  void compare_credential(const EgressRule& old, const EgressRule& rule) {
    if (old.credential == rule.credential) return;
    if (rule.credential.empty())
      add(Effect::kCloses, rule, "credential", old.credential, "", "without a secret of yours");
    else
      add(Effect::kOpens, rule, "credential", old.credential, rule.credential,
          "with " + std::string(old.credential.empty() ? "a" : "another") + " secret of yours");
  }

  const std::vector<EgressRule>& before_;
  const std::vector<EgressRule>& after_;
  std::vector<std::optional<size_t>> partner_;  // of a rule of `after_`, its place in `before_`
  std::vector<bool> taken_;
  std::vector<Change> changes_;
  std::string crossing_;
};

}  // namespace

std::vector<Change> diff_egress(const Manifest& before, const Manifest& after) {
  return EgressDiffer(before, after).run();
}

}  // namespace firestop::manifest
