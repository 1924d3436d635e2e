#include "egress/guard_exchange.h"

#include <algorithm>
#include <set>

#include "credentials/inflate.h"
#include "credentials/sigv4_body.h"
#include "credentials/websocket.h"
#include "egress/codes.h"
#include "egress/git_rules.h"
#include "manifest/rules.h"

namespace firestop::egress {
namespace {

using credentials::SigV4;
using credentials::Slot;
using http::find_header;
using http::same_name;

std::string value_of(const http::Headers& headers, std::string_view name) {
  const auto* header = find_header(headers, name);
  return header ? header->value : "";
}

// Two readers take several for different things.
bool has_two_codings(const http::Headers& headers) {
  return std::count_if(headers.begin(), headers.end(), [](const http::Header& header) {
           return same_name(header.name, "Content-Encoding");
         }) > 1;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Bodies that are read by people and by parsers that ask for no length within.
bool is_text(std::string_view type) {
  return type.starts_with("text/") || contains(type, "json") || contains(type, "xml") ||
         contains(type, "javascript") || contains(type, "x-www-form-urlencoded") || contains(type, "graphql");
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

// What of Accept-Encoding the scrubber can read. Nothing that is named means: no coding.
void limit_codings(http::Headers& headers) {
  const std::string asked = lower(value_of(headers, "Accept-Encoding"));
  std::string out;
  for (const std::string_view coding : {"gzip", "br"})
    if (contains(asked, coding)) out.append(out.empty() ? "" : ", ").append(coding);
  http::remove_headers(headers, "Accept-Encoding");
  headers.push_back({"Accept-Encoding", out.empty() ? "identity" : out});
}

Denial denial(int status, const char* code, const std::string& rule, std::string message, std::string what) {
  Denial out;
  out.status = status;
  out.code = code;
  out.rule = rule;
  out.message = std::move(message);
  out.what_to_do = std::move(what);
  return out;
}

// One filter after another.
class Chain : public Filter {
 public:
  Chain(std::unique_ptr<Filter> first, std::unique_ptr<Filter> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    between_.clear();
    if (auto denied = first_->feed(bytes, between_)) return denied;
    return second_->feed(between_, out);
  }
  std::optional<Denial> finish(std::string& out) override {
    between_.clear();
    if (auto denied = first_->finish(between_)) return denied;
    if (auto denied = second_->feed(between_, out)) return denied;
    return second_->finish(out);
  }
  bool decides() const override { return first_->decides() || second_->decides(); }
  size_t held() const override { return first_->held() + second_->held(); }
  std::string detail() const override {
    return first_->detail().empty() ? second_->detail() : first_->detail();
  }

 private:
  std::unique_ptr<Filter> first_, second_;
  std::string between_;
};

std::unique_ptr<Filter> chain(std::unique_ptr<Filter> first, std::unique_ptr<Filter> second) {
  if (!first || !second) return first ? std::move(first) : std::move(second);
  return std::make_unique<Chain>(std::move(first), std::move(second));
}

std::optional<Denial> alarm_in(credentials::Detector& detector, const http::Headers& headers,
                               const std::string& what, const std::string& rule) {
  std::string all;
  for (const auto& header : headers) {
    if (const auto* credential = detector.find(header.value))
      return elsewhere(*credential, what + " " + header.name.substr(0, 64), rule);
    all.append(header.name).append(header.value);
  }
  // In a name, or cut into several headers.
  if (const auto* credential = detector.find(all)) return elsewhere(*credential, what + "s", rule);
  return {};
}

// Where a placeholder stands in its place.
struct Placed {
  std::optional<Slot> slot;
  std::optional<SigV4> sigv4;
  explicit operator bool() const { return slot || sigv4; }
};

class GuardedExchange : public Exchange {
 public:
  GuardedExchange(GuardState& state, Origin origin) : state_(state), origin_(std::move(origin)) {}

  void admit(http::RequestHead& head, std::function<void(std::optional<Denial>)> done) override {
    Placed placed;
    if (auto denied = decide(head, placed)) {
      answer_in_git(head, *denied);
      done(std::move(denied));
      return;
    }
    if (has_two_codings(head.headers))
      return done(denial(400, codes::kBadRequest, route_.rule,
                         "the request has more than one Content-Encoding", "Send one."));
    if (placed.sigv4) head_as_signed_ = head;
    prepare(head);
    if (placed)
      fetch(head, std::move(placed), std::move(done));
    else
      done({});
  }

  const Route& route() const override { return route_; }
  Filter* request_body() override { return request_body_.get(); }
  Filter* response_body() override { return response_body_.get(); }
  Filter* websocket_out() override { return websocket_out_.get(); }
  Filter* websocket_in() override { return websocket_in_.get(); }

  std::string in_body() const override {
    std::string out;
    for (const auto& credential : in_body_) out.append(out.empty() ? "" : " ").append(credential);
    return out;
  }

  std::optional<Denial> request_trailers(http::Headers& trailers) override {
    return alarm_in(state_.detector, trailers, "a trailer", route_.rule);
  }

  std::optional<Denial> answer(http::ResponseHead& head) override {
    if (!scrubs_) return {};
    const auto scrubber = state_.scrubber(origin_.asked.host);
    if (scrubber->empty()) return {};
    for (auto& header : head.headers) scrubber->scrub(header.value);
    if (head.status == 101) {
      constexpr credentials::Scrubber::Shape kShape{.same_length = true, .live = true};
      websocket_in_ = credentials::websocket_scrubber(
          {.message = scrubber->body_filter("", kShape, bad_answer()),
           .control = scrubber->body_filter("", kShape, bad_answer())},
          [rule = route_.rule](const std::string& why) {
            return denial(502, codes::kBadRequest, rule, "the origin sends " + why, "Connect again.");
          });
      return {};
    }
    if (head.status < 200 || head.status == 304 || head_only_ || head.body.kind == http::Body::Kind::kNone)
      return {};
    return scrub_body(head, *scrubber);
  }

  std::optional<Denial> answer_trailers(http::Headers& trailers) override {
    if (!scrubs_ || trailers.empty()) return {};
    const auto scrubber = state_.scrubber(origin_.asked.host);
    for (auto& trailer : trailers) scrubber->scrub(trailer.value);
    return {};
  }

 private:
  // Everything that can be said before a value is asked for.
  std::optional<Denial> decide(const http::RequestHead& head, Placed& placed) {
    const Authority& to = origin_.asked;
    head_only_ = head.method == "HEAD";
    route_.to = to;
    route_.tls = origin_.tls;
    const bool names_agree = head.authority == to &&
                             (!origin_.tls || origin_.server_name.empty() ||
                              manifest::canonical_host(origin_.server_name) == to.host) &&
                             head.scheme == (origin_.tls ? "https" : "http");
    const auto verdict = state_.policy.request({.scheme = head.scheme,
                                                .to = to,
                                                .method = head.method,
                                                .target = head.target,
                                                .websocket = head.upgrade == "websocket",
                                                .headers = &head.headers});
    if (verdict.rule) route_.rule = verdict.rule->name;
    const bool granted = names_agree && verdict.allowed();
    if (granted && verdict.rule) credential_ = state_.credential(verdict.rule->says.credential);
    if (credential_) placed = place(head);

    // Who sends a placeholder astray wants to know whether anybody sees it: an alarm goes before a denial.
    if (auto alarm = placed ? find_in(without(head, placed)) : find_in(head)) return alarm;
    if (!names_agree)
      return denial(403, codes::kHostMismatch, route_.rule,
                    "the request names " + head.authority.host + " on a connection to " + to.host,
                    "Use one name for the address, the TLS server name and the Host header.");
    if (!verdict.allowed()) return verdict.denial;
    if (placed && head.scheme != "https" && !verdict.rule->says.plain_text) {
      auto out = denial(403, codes::kPlainText, route_.rule,
                        "credential " + credential_->name + " does not go over http://", "Use https://.");
      out.alarm = true;
      out.credential = credential_->name;
      return out;
    }
    if (placed.sigv4 && !verify_now(head, *placed.sigv4))
      return bad_signature("it is not that of the placeholder");
    if (const auto& git = verdict.rule->says.git) {
      auto asked = judge_git_request(*git, verdict.rule->name, head);
      if (asked.denial) return std::move(asked.denial);
      request_body_ = std::move(asked.body);
    }
    allowed_in_body_ = verdict.rule->says.placeholders_in_body;
    route_.private_addresses = verdict.rule->says.private_addresses;
    route_.ca = verdict.rule->ca;
    state_.map(route_);
    scrubs_ = state_.policy.has_credential(to.host);
    return {};
  }

  // Makes the answer one that can be looked through, and puts the filters in place.
  void prepare(http::RequestHead& head) {
    if (state_.detector.empty()) return;
    const bool websocket = head.upgrade == "websocket";
    if (websocket) http::remove_headers(head.headers, "Sec-WebSocket-Extensions");
    const auto found = [this](const std::string& credential) -> std::optional<Denial> {
      if (!may_be_in_body(credential)) return elsewhere(credential, "the body", route_.rule);
      in_body_.insert(credential);
      return {};
    };
    const auto bad = [rule = route_.rule](const std::string& why) {
      return denial(400, codes::kBadRequest, rule, "the body is not what its Content-Encoding says: " + why,
                    "Send it without Content-Encoding.");
    };
    if (websocket)
      websocket_out_ =
          credentials::websocket_detector({.message = state_.detector.body_filter("", found, bad),
                                           .control = state_.detector.body_filter("", found, bad)});
    if (head.body.kind != http::Body::Kind::kNone)
      request_body_ =
          chain(std::move(request_body_),
                state_.detector.body_filter(value_of(head.headers, "Content-Encoding"), found, bad));
    if (!scrubs_) return;
    limit_codings(head.headers);
    // Pieces of an answer could bring a value piece by piece; to leave out a range is an origin's right.
    for (const char* name : {"Range", "If-Range"}) http::remove_headers(head.headers, name);
    if (find_header(head.headers, "grpc-accept-encoding")) {
      http::remove_headers(head.headers, "grpc-accept-encoding");
      head.headers.push_back({"grpc-accept-encoding", "identity"});
    }
  }

  bool may_be_in_body(const std::string& credential) const {
    return allowed_in_body_ == "all" ||
           (allowed_in_body_ == "own" && credential_ && credential_->name == credential);
  }

  Placed place(const http::RequestHead& head) const {
    if (credential_->inject == "sigv4")
      return {{}, SigV4::find(head, state_.placeholder_key(*credential_).id)};
    return {credentials::find_slot(head, *credential_, state_.placeholder(credential_->name)), {}};
  }

  http::RequestHead without(const http::RequestHead& head, const Placed& placed) const {
    if (placed.slot) return credentials::without_slot(head, *placed.slot);
    return placed.sigv4 ? placed.sigv4->without_key(head, state_.placeholder_key(*credential_)) : head;
  }

  static bool waits_for_body(const http::RequestHead& head, const SigV4& sigv4) {
    return sigv4.payload() == SigV4::Payload::kBody && head.body.kind != http::Body::Kind::kNone;
  }

  bool verify_now(const http::RequestHead& head, SigV4& sigv4) const {
    return waits_for_body(head, sigv4) ||
           sigv4.verify(head, state_.placeholder_key(*credential_), credentials::sigv4_body_hash(""));
  }

  Denial bad_signature(const std::string& why) const {
    return denial(400, codes::kBadRequest, route_.rule, "the AWS signature cannot be made again: " + why,
                  "Sign with the keys in the environment, by Signature Version 4.");
  }

  // Puts the value in, or the filters that will.
  std::optional<Denial> put(http::RequestHead& head, const Placed& placed, const credentials::Secret& value) {
    route_.credential = credential_->name;
    if (placed.slot) {
      credentials::put_value(head, *placed.slot, *credential_, value);
      return {};
    }
    if (!placed.sigv4) return unavailable("the request has no place for it");
    const SigV4& theirs = *placed.sigv4;
    auto key = credentials::parse_aws_key(value.reveal());
    if (!key) return unavailable(key.error().message);
    const auto bad = [this](const std::string& why) { return bad_signature(why); };
    SigV4 ours = theirs;
    if (waits_for_body(head, ours)) {
      auto sign = [this, &head, ours, signed_head = head_as_signed_,
                   real = *key](std::string_view hash) mutable -> std::optional<Denial> {
        if (!ours.verify(signed_head, state_.placeholder_key(*credential_), hash))
          return bad_signature("it is not that of the placeholder");
        ours.sign(head, real, hash);
        return {};
      };
      request_body_ = chain(std::move(request_body_), credentials::sigv4_body(std::move(sign), bad));
      return {};
    }
    ours.sign(head, *key, credentials::sigv4_body_hash(""));
    if (ours.payload() == SigV4::Payload::kChunks || ours.payload() == SigV4::Payload::kChunksAndTrailer)
      request_body_ =
          chain(std::move(request_body_),
                credentials::sigv4_chunks(theirs, state_.placeholder_key(*credential_), ours, *key, bad));
    return {};
  }

  void fetch(http::RequestHead& head, Placed placed, std::function<void(std::optional<Denial>)> done) {
    const std::weak_ptr<int> alive = alive_;
    if (!state_.vault) {
      done(unavailable("there is no source of credentials"));
      return;
    }
    state_.vault->get(credential_->name, [this, alive, &head, placed = std::move(placed),
                                          done = std::move(done)](Result<credentials::SharedSecret> value) {
      if (alive.expired()) return;
      auto denied = value ? put(head, placed, **value) : unavailable(value.error().message);
      if (denied) answer_in_git(head, *denied);
      done(std::move(denied));
    });
  }

  std::optional<Denial> find_in(const http::RequestHead& head) const {
    return egress::alarm_in(state_.detector, head, route_.rule);
  }

  Denial unavailable(const std::string& why) const {
    return denial(502, codes::kCredentialUnavailable, route_.rule,
                  "credential " + credential_->name + " cannot be had: " + why,
                  "Nothing was sent. Try again later, or tell the operator of the sandbox.");
  }

  std::function<Denial(const std::string&)> bad_answer() const {
    return [rule = route_.rule](const std::string& why) {
      return denial(502, codes::kBadRequest, rule, "the answer is not what its Content-Encoding says: " + why,
                    "Ask without Accept-Encoding.");
    };
  }

  std::optional<Denial> scrub_body(http::ResponseHead& head, const credentials::Scrubber& scrubber) {
    const std::string coding = value_of(head.headers, "Content-Encoding");
    if (has_two_codings(head.headers))
      return denial(502, codes::kBadRequest, route_.rule, "the answer has more than one Content-Encoding",
                    "");
    const bool coded = !coding.empty() && !same_name(coding, "identity");
    if (coded && !credentials::Inflate::knows(coding))
      return denial(
          502, codes::kBadRequest, route_.rule,
          "the answer has a Content-Encoding that nobody asked for, and that cannot be looked through", "");
    const std::string type = lower(value_of(head.headers, "Content-Type"));
    const credentials::Scrubber::Shape shape{
        .same_length = !is_text(type),
        .live = type.starts_with("text/event-stream") || type.starts_with("application/grpc")};
    response_body_ = scrubber.body_filter(coded ? coding : "", shape, bad_answer());
    if (coded) http::remove_headers(head.headers, "Content-Encoding");
    if (coded || !shape.same_length) head.body = {http::Body::Kind::kUnknown, 0};
    return {};
  }

  GuardState& state_;
  Origin origin_;
  Route route_;
  const manifest::Credential* credential_ = nullptr;  // of the rule
  std::string allowed_in_body_;                       // of the rule: whose placeholders
  std::set<std::string> in_body_;                     // whose did stand there
  http::RequestHead head_as_signed_;                  // of sigv4, before anything of it was changed
  bool head_only_ = false;
  bool scrubs_ = false;  // the host is one that values go to
  std::unique_ptr<Filter> request_body_, response_body_, websocket_out_, websocket_in_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::optional<Denial> alarm_in(credentials::Detector& detector, const http::RequestHead& head,
                               const std::string& rule) {
  if (detector.empty()) return {};
  if (const auto* credential = detector.find_in_name(head.authority.host))
    return elsewhere(*credential, "the host's name", rule);
  if (const auto* credential = detector.find(head.target))
    return elsewhere(*credential, "the path or query", rule);
  if (const auto* credential = detector.find(head.method)) return elsewhere(*credential, "the method", rule);
  return alarm_in(detector, head.headers, "header", rule);
}

Denial elsewhere(const std::string& credential, const std::string& where, const std::string& rule) {
  auto out = denial(
      403, codes::kCredentialElsewhere, rule,
      "the placeholder of credential " + credential + " stands in " + where + ", where it does not belong",
      "Send it only as the tool that it is meant for does, to the hosts that it is meant for.");
  out.alarm = true;
  out.credential = credential;
  return out;
}

std::unique_ptr<Exchange> make_exchange(GuardState& state, const Origin& origin) {
  return std::make_unique<GuardedExchange>(state, origin);
}

}  // namespace firestop::egress
