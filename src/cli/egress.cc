// `firestop egress test`: what the rules say of one request, without a network.
#include <algorithm>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "egress/codes.h"
#include "egress/policy.h"
#include "http/message.h"
#include "manifest/load.h"
#include "manifest/rules.h"
#include "manifest/words.h"

namespace firestop::cli {
namespace {

using Use = egress::ConnectionPlan::Use;

struct Target {
  std::string scheme;  // "https", "http", "tls", "tcp"
  http::Authority authority;
  std::string path;
  bool websocket = false;
};

Result<Target> parse_url(const std::string& url) {
  struct Scheme {
    std::string_view begin, scheme;
    uint16_t port;
    bool websocket;
  };
  constexpr Scheme kSchemes[] = {{"https://", "https", 443, false}, {"http://", "http", 80, false},
                                 {"wss://", "https", 443, true},    {"ws://", "http", 80, true},
                                 {"tls://", "tls", 443, false},     {"tcp://", "tcp", 0, false}};
  const auto refuse = [&](const char* why) {
    return fail(
        "usage.url", "'" + printable(url) + "' " + why,
        "write it as https://api.example.com/v1/models; http, ws, wss, tls://HOST:PORT and tcp://HOST:PORT "
        "too");
  };
  for (const auto& one : kSchemes) {
    if (!url.starts_with(one.begin)) continue;
    std::string_view rest = std::string_view(url).substr(one.begin.size());
    rest = rest.substr(0, rest.find('#'));
    const size_t end = std::min(rest.find_first_of("/?"), rest.size());
    const auto authority = http::parse_authority(rest.substr(0, end), one.port);
    if (!authority || authority->port == 0) return refuse("has no host, or no port");
    std::string path(rest.substr(end));
    if (!path.starts_with('/')) path.insert(0, "/");
    return Target{std::string(one.scheme), *authority, std::move(path), one.websocket};
  }
  return refuse("is no URL");
}

// What is said, as text and as JSON.
struct Answer {
  const egress::Rule* rule = nullptr;
  std::optional<egress::Denial> denial;
  const manifest::Credential* credential = nullptr;
  std::string remark;
};

Answer ask(const manifest::Manifest& manifest, const egress::Policy& policy, const std::string& method,
           const Target& target) {
  Answer out;
  const auto plan = policy.connection(target.authority);
  const auto rule_named = [&](const std::string& name) -> const egress::Rule* {
    const auto& rules = policy.rules();
    const auto found =
        std::find_if(rules.begin(), rules.end(), [&](const auto& rule) { return rule.name == name; });
    return found == rules.end() ? nullptr : &*found;
  };
  if (plan.use == Use::kDeny) {
    out.denial = plan.denial;
    out.rule = rule_named(plan.denial.rule);
    return out;
  }
  const bool unread = plan.use == Use::kTcp || (plan.use == Use::kPassThrough && target.scheme != "http");
  if (unread) {
    out.rule = rule_named(plan.route.rule);
    out.remark = plan.use == Use::kTcp ? "bytes pass as they are; nothing of them is read"
                                       : "TLS passes through by its server name; nothing of it is read";
    return out;
  }
  const bool encrypted = target.scheme == "https" || target.scheme == "tls";
  const auto verdict = policy.request({.scheme = encrypted ? "https" : "http",
                                       .to = target.authority,
                                       .method = method,
                                       .target = target.path,
                                       .websocket = target.websocket});
  out.rule = verdict.rule;
  out.denial = verdict.denial;
  if (!verdict.allowed()) return out;
  for (const auto& credential : manifest.credentials)
    if (credential.name == verdict.rule->says.credential) out.credential = &credential;
  if (out.credential && !encrypted && !verdict.rule->says.plain_text) {
    out.remark = "credential " + out.credential->name + " does not go over http://";
    out.credential = nullptr;
  }
  if (verdict.rule->says.git) out.remark = "as git's request; a push is decided ref by ref";
  return out;
}

std::string rule_words(const egress::Rule& rule) {
  return rule.name + ": " + manifest::destination_words(rule.says) + ", " +
         manifest::request_words(rule.says);
}

void print(Context& context, const Answer& answer, const std::string& method, const std::string& url) {
  auto& terminal = context.terminal;
  const bool allowed = !answer.denial;
  std::string text =
      terminal.paint(allowed ? Style::kGreen : Style::kRed, allowed ? "allowed" : "denied", Stream::kOut) +
      (allowed ? "  " : "   ") + printable(method) + " " + printable(url) + "\n";
  const auto line = [&](const char* label, const std::string& what) {
    if (!what.empty())
      text += "  " + std::string(label) + std::string(12 - std::string_view(label).size(), ' ') +
              printable(what) + "\n";
  };
  if (answer.denial) line("code", answer.denial->code);
  if (answer.rule) line(allowed ? "rule" : "nearest", rule_words(*answer.rule));
  if (answer.credential)
    line("credential",
         answer.credential->name + ", in place of the placeholder in $" + answer.credential->env);
  if (answer.denial) {
    line("why", answer.denial->message);
    line("what to do", answer.denial->what_to_do);
  }
  line("remark", answer.remark);
  terminal.out(text);
}

codec::Json answer_json(const Answer& answer, const std::string& method, const std::string& url) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? codec::Json() : codec::Json(text);
  };
  return codec::JsonObject{
      {"allowed", !answer.denial},
      {"method", method},
      {"url", url},
      {"code", answer.denial ? codec::Json(answer.denial->code) : codec::Json()},
      {"rule", answer.rule ? codec::Json(answer.rule->name) : codec::Json()},
      {"credential", answer.credential ? codec::Json(answer.credential->name) : codec::Json()},
      {"message", answer.denial ? codec::Json(answer.denial->message) : codec::Json()},
      {"what_to_do", answer.denial ? codec::Json(answer.denial->what_to_do) : codec::Json()},
      {"remark", or_null(answer.remark)}};
}

Result<int> test(const ParsedArgs& args, Context& context) {
  const std::string &file = args.required("FILE"), &method = args.required("METHOD"),
                    &url = args.required("URL");
  TRY_ASSIGN(const Target target, parse_url(url));
  TRY_ASSIGN(const manifest::Loaded loaded, manifest::load_file(file));
  if (!loaded.faults.empty()) {
    if (context.json)
      print_json(context, diagnostics_json(loaded.faults));
    else
      print_faults(context, loaded.faults, loaded.text);
    return static_cast<int>(ExitStatus::kUsage);
  }
  const egress::Policy policy(loaded.manifest.egress);
  const Answer answer = ask(loaded.manifest, policy, method, target);
  if (context.json)
    print_json(context, answer_json(answer, method, url));
  else
    print(context, answer, method, url);
  return answer.denial ? 1 : 0;
}

}  // namespace

CommandSpec egress_group() {
  return {.name = "egress",
          .summary = "ask what may leave a sandbox",
          .description = "Commands about the rules in a manifest's egress section.",
          .exits = {exit_note(ExitStatus::kUsage)}};
}

CommandSpec egress_test_command() {
  return {
      .name = "egress test",
      .summary = "say whether a request would be allowed, by which rule, with which credential",
      .description =
          "Compares one request with the rules of a manifest, as a run would, without a network: nothing is "
          "resolved and nobody is asked. Says the rule that allows it and the name of the credential that "
          "may go "
          "in, or the code of the denial and the rule that came nearest.\n\n"
          "METHOD counts for http and https. tls:// and tcp:// take HOST:PORT.",
      .positionals = {{.name = "FILE",
                       .help = "the manifest",
                       .kind = PositionalKind::kRequired,
                       .completes = Completes::kFiles},
                      {.name = "METHOD",
                       .help = "as in the request, such as GET",
                       .kind = PositionalKind::kRequired},
                      {.name = "URL", .help = "where to", .kind = PositionalKind::kRequired}},
      .options = {json_option()},
      .examples = {{"firestop egress test firestop.yaml POST https://api.example.com/v1/chat",
                    "may the sandbox of ./firestop.yaml send that?"}},
      .exits = {exit_note(ExitStatus::kOk, "it would be allowed"),
                {"1", "it would be denied"},
                exit_note(ExitStatus::kUsage, "the manifest, the URL or the command line is wrong")},
      .handler = test,
  };
}

}  // namespace firestop::cli
