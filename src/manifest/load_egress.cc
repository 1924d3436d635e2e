#include <algorithm>

#include "base/path.h"
#include "manifest/loader.h"
#include "manifest/overlap.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;

constexpr size_t kMostRules = 500;
constexpr size_t kMostParts = 100;  // ports, methods, paths, refs of a rule
constexpr std::string_view kProtocols[] = {"http", "tls", "tcp"};
constexpr std::string_view kMethods[] = {"GET",     "HEAD",     "POST",      "PUT",        "PATCH",  "DELETE",
                                         "OPTIONS", "PROPFIND", "PROPPATCH", "MKCOL",      "COPY",   "MOVE",
                                         "LOCK",    "UNLOCK",   "REPORT",    "MKCALENDAR", "SEARCH", "QUERY"};

bool names_a_preset(const codec::YamlNode& node) {
  return node.kind == codec::YamlNode::Kind::kMapping && node.find("preset") != nullptr;
}

class RuleLoader {
 public:
  RuleLoader(Loading& loading, const Place& place)
      : loading_(loading),
        reader_(loading.reader),
        place_(place),
        fields_(reader_, place, kEgressKeys, "an egress rule") {
    rule_.where = place.where();
    rule_.name = place.field;
  }

  void load() {
    if (!fields_.valid()) return;
    load_destination();
    load_protocol();
    load_ports();
    load_list("methods", rule_.methods, [](const std::string& method) -> std::string {
      if (method == "CONNECT" || method == "TRACE") return "is never passed on";
      if (std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods)) return {};
      const auto near = closest(method, kMethods);
      return near.empty() ? "is no method" : "is no method, but " + std::string(near) + " is";
    });
    load_list("paths", rule_.paths, [](const std::string& path) { return why_not_request_path(path); });
    if (const auto place = fields_.get("private"))
      rule_.private_addresses = reader_.boolean(*place).value_or(false);
    if (const auto place = fields_.get("websocket"))
      rule_.websocket = reader_.boolean(*place).value_or(false);
    if (const auto place = fields_.get("git")) load_git(*place);
    if (const auto place = fields_.get("plain_text"))
      rule_.plain_text = reader_.boolean(*place).value_or(false);
    if (const auto place = fields_.get("ca")) load_authority(*place);
    load_credential();
    if (const auto place = fields_.get("placeholders_in_body"))
      rule_.placeholders_in_body = read_placeholders_in_body(reader_, *place);
    check_together();
    loading_.manifest.egress.push_back(std::move(rule_));
  }

 private:
  void load_destination() {
    const auto host = fields_.get("host"), cidr = fields_.get("cidr");
    if (!host == !cidr) {
      reader_.fault(place_, host ? "has both host and cidr" : "has neither host nor cidr",
                    "expected one of them");
      return;
    }
    if (host) {
      constexpr std::string_view kExpected =
          "a host such as api.example.com, *.example.com or **.example.com";
      const auto name = reader_.text(*host, kExpected);
      if (!name) return;
      if (const auto why = why_not_host(*name); !why.empty())
        reader_.fault(*host, in_quotes(*name) + " " + why,
                      "expected " + std::string(kExpected) + "; addresses have cidr");
      rule_.host = canonical_host(*name);
      return;
    }
    const auto text = reader_.text(*cidr, "a network such as 192.0.2.0/24");
    if (!text) return;
    const Cidr read = read_cidr(*text);
    if (!read.why_not.empty()) {
      reader_.fault(*cidr, in_quotes(*text) + " " + read.why_not,
                    "expected a network such as 192.0.2.0/24 or 2001:db8::/32");
    } else if (const auto place = fields_.get("private");
               !read.public_address && (!place || place->node->text.starts_with('f'))) {
      reader_.fault(*cidr, in_quotes(*text) + " is not a public network",
                    "expected private: true beside it, if that is what is meant");
    } else if (!read.special.empty()) {
      reader_.fault(*cidr, in_quotes(*text) + ": each is " + read.special + ", which no network includes",
                    "expected the one address that is meant, such as 127.0.0.1/32");
    }
    rule_.cidr = *text;
  }

  void load_protocol() {
    rule_.protocol = rule_.cidr.empty() ? "http" : "tcp";
    if (const auto place = fields_.get("protocol"))
      if (const auto index = reader_.word(*place, kProtocols)) rule_.protocol = kProtocols[*index];
  }

  void add_port(const Place& place) {
    const auto port = reader_.integer(place, 1, 65535);
    if (!port) return;
    const auto number = static_cast<uint16_t>(*port);
    if (std::find(rule_.ports.begin(), rule_.ports.end(), number) != rule_.ports.end())
      reader_.fault(place, std::to_string(number) + " is there twice", "expected each port once");
    rule_.ports.push_back(number);
  }

  void load_ports() {
    const auto port = fields_.get("port"), ports = fields_.get("ports");
    if (port && ports)
      reader_.fault(fields_.key_position("port"), port->field, "is there beside ports",
                    "expected one of them");
    if (port) add_port(*port);
    if (ports) {
      const auto items = reader_.items(*ports, "a list of ports", kMostParts);
      refuse_empty(*ports);
      for (const auto& item : items) add_port(item);
    }
    if (port || ports) return;
    if (rule_.protocol == "tcp")
      reader_.fault(place_, "is a rule for tcp without ports", "expected port or ports");
    else if (rule_.protocol == "tls")
      rule_.ports = {443};
    else
      rule_.ports = {443, 80};
  }

  // An empty list grants nothing, and a rule that grants nothing is a mistake.
  void refuse_empty(const Place& place) {
    if (place.node->kind != codec::YamlNode::Kind::kSequence || !place.node->items.empty()) return;
    reader_.fault(place, "is empty, so that the rule allows nothing",
                  "expected at least one, or no such rule");
  }

  template <typename Why>
  void load_list(const char* key, std::vector<std::string>& out, Why why_not) {
    const auto place = fields_.get(key);
    if (!place) return;
    const auto items = reader_.items(*place, "a list", kMostParts);
    refuse_empty(*place);
    for (const auto& item : items) {
      const auto value = reader_.text(item, "text");
      if (!value) continue;
      if (const auto why = why_not(*value); !why.empty())
        reader_.fault(item, in_quotes(*value) + " " + why,
                      std::string_view(key) == "methods" ? "expected methods in capitals, such as GET"
                                                         : "expected a pattern such as /v1/**");
      else if (std::find(out.begin(), out.end(), *value) != out.end())
        reader_.fault(item, in_quotes(*value) + " is there twice", "expected each once");
      out.push_back(*value);
    }
  }

  void load_git(const Place& place) {
    const Fields fields(reader_, place, kGitKeys, "git");
    if (!fields.valid()) return;
    EgressRule::Git git;
    if (const auto repository = fields.require("repository", "a path such as acme/widget")) {
      if (const auto path = reader_.text(*repository, "a path such as acme/widget")) {
        auto why = std::string(why_not_relative_path(*path));
        if (why.empty() && path->find_first_of("*?%#") != std::string::npos)
          why = "the path contains a pattern or an escape";
        if (!why.empty())
          reader_.fault(*repository, in_quotes(*path) + ": " + why,
                        "expected one repository, such as acme/widget");
        git.repository = *path;
      }
    }
    if (const auto fetch = fields.get("fetch")) git.fetch = reader_.boolean(*fetch).value_or(false);
    if (const auto push = fields.get("push")) {
      for (const auto& item : reader_.items(*push, "a list of refs, such as [\"refs/heads/agent/**\"]")) {
        const auto pattern = reader_.text(item, "a ref");
        if (!pattern) continue;
        if (const auto why = why_not_ref_pattern(*pattern); !why.empty())
          reader_.fault(item, in_quotes(*pattern) + " " + why,
                        "expected a pattern such as refs/heads/agent/**");
        git.push.push_back(*pattern);
      }
    }
    load_push_details(fields, git);
    if (!git.fetch && git.push.empty())
      reader_.fault(place, "allows neither fetch nor push", "expected fetch: true, push: [...] or both");
    rule_.git = std::move(git);
  }

  void load_push_details(const Fields& fields, EgressRule::Git& git) {
    if (const auto place = fields.get("delete")) git.deletes = reader_.boolean(*place).value_or(false);
    if (const auto place = fields.get("push_options")) {
      for (const auto& item :
           reader_.items(*place, "a list of push options, such as [ci.skip]", kMostParts)) {
        const auto option = reader_.text(item, "a push option");
        if (!option) continue;
        if (const auto why = why_not_push_option(*option); !why.empty())
          reader_.fault(item, in_quotes(*option) + " " + why,
                        "expected an option such as ci.skip, or its beginning such as merge_request.title=*");
        git.options.push_back(*option);
      }
    }
    if (!git.push.empty()) return;
    for (const char* key : {"delete", "push_options"})
      if (const auto place = fields.get(key))
        reader_.fault(fields.key_position(key), place->field, "means nothing without push",
                      "expected it beside push: [...]");
  }

  // Certificates as PEM text: in the manifest itself, so that the signature covers them.
  void load_authority(const Place& place) {
    const auto text = reader_.text(place, "certificates in PEM form");
    if (!text) return;
    if (const auto why = why_not_certificates(*text); !why.empty())
      reader_.fault(place, why,
                    "expected one or more -----BEGIN CERTIFICATE----- blocks, as a block of text: ca: |");
    rule_.ca = *text;
  }

  void load_credential() {
    const auto place = fields_.get("credential");
    if (!place) return;
    const auto name = reader_.text(*place, "the name of a credential");
    if (!name) return;
    loading_.credentials_used.emplace_back(*place, *name);
    rule_.credential = *name;
    if (rule_.protocol != "http") {
      reader_.fault(fields_.key_position("credential"), place->field, "cannot be put into " + rule_.protocol,
                    "expected protocol: http");
      return;
    }
    for (const char* key : {"methods", "paths"})
      if (!rule_.git && !fields_.has(key))
        reader_.fault(
            place_, "hands out a credential without " + std::string(key),
            std::string("expected ") + key + ", since a credential is bounded by verb and not only by host");
  }

  // Over http:// everybody on the way reads it.
  void check_plain_text() {
    if (rule_.plain_text && rule_.credential.empty())
      reader_.fault(fields_.key_position("plain_text"), codec::child_path(place_.field, "plain_text"),
                    "means nothing without a credential", "expected it beside credential only");
    if (rule_.credential.empty() || rule_.plain_text || rule_.ports != std::vector<uint16_t>{80}) return;
    reader_.fault(fields_.key_position("credential"), codec::child_path(place_.field, "credential"),
                  "would go over http://, where everybody on the way can read it",
                  "expected port 443, or plain_text: true if that is what is meant");
  }

  void check_together() {
    check_plain_text();
    const auto refuse = [&](const char* key, const std::string& why, const char* expected) {
      if (fields_.has(key))
        reader_.fault(fields_.key_position(key), codec::child_path(place_.field, key), why, expected);
    };
    if (!rule_.cidr.empty() && rule_.protocol != "tcp")
      refuse("protocol", "is " + rule_.protocol + " for a network of addresses",
             "expected tcp, or a rule with host");
    if (rule_.protocol != "http")
      for (const char* key : {"methods", "paths", "websocket", "git", "ca", "placeholders_in_body"})
        refuse(key, "means nothing for " + rule_.protocol, "expected it with protocol: http only");
    if (rule_.git)
      for (const char* key : {"methods", "paths", "websocket", "placeholders_in_body"})
        refuse(key, "stands beside git, which says what may be asked", "expected one of them");
  }

  Loading& loading_;
  Reader& reader_;
  const Place& place_;
  Fields fields_;
  EgressRule rule_;
};

}  // namespace

std::string read_placeholders_in_body(Reader& reader, const Place& place) {
  constexpr std::string_view kWords[] = {"none", "own", "all"};
  const auto index = reader.word(place, kWords);
  return index && *index > 0 ? std::string(kWords[*index]) : "";
}

void load_rule(Loading& loading, const Place& place) {
  RuleLoader(loading, place).load();
}

void load_egress(Loading& loading, const Place& place) {
  const size_t faults = loading.reader.fault_count();
  for (const auto& item :
       loading.reader.items(place, "a list of rules, such as [{host: api.example.com}]", kMostRules))
    if (names_a_preset(*item.node))
      load_preset(loading, item);
    else
      load_rule(loading, item);
  // Of a rule that was misread nobody knows what it overlaps with.
  if (loading.reader.fault_count() == faults) check_overlaps(loading);
}

}  // namespace firestop::manifest
