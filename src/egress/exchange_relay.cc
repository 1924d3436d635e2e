#include "egress/exchange_relay.h"

#include <algorithm>
#include <utility>

#include "egress/codes.h"

namespace firestop::egress {
namespace {

int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

constexpr size_t kMostPath = 2048;  // of the record
constexpr std::chrono::seconds kConnectTime{60};

uint64_t size_of(const http::Headers& headers) {
  uint64_t size = 0;
  for (const auto& header : headers) size += header.name.size() + header.value.size() + 4;
  return size;
}

bool is_idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" || method == "DELETE";
}

Denial failed(int status, const char* code, const Route& route, std::string message) {
  Denial out;
  out.status = status;
  out.code = code;
  out.rule = route.rule;
  out.message = std::move(message);
  return out;
}

// Beyond what back-pressure keeps streams at.
size_t beyond_mark(const http::Stream* stream) {
  return stream && stream->buffered() > http::kHighWater ? stream->buffered() - http::kHighWater : 0;
}

}  // namespace

class ExchangeRelay::GuestSide : public http::StreamReceiver {
 public:
  explicit GuestSide(ExchangeRelay& relay) : relay_(relay) {}
  void on_data(std::string_view bytes) override { relay_.on_guest_data(bytes); }
  void on_end(http::Headers trailers) override { relay_.on_guest_end(std::move(trailers)); }
  void on_abort(const std::string& why) override { relay_.fail("the guest's side: " + why); }
  void on_writable() override { relay_.give_back_to_origin(); }

 private:
  ExchangeRelay& relay_;
};

class ExchangeRelay::OriginSide : public http::StreamReceiver {
 public:
  explicit OriginSide(ExchangeRelay& relay) : relay_(relay) {}
  void on_response(http::ResponseHead head) override { relay_.on_response(std::move(head)); }
  void on_data(std::string_view bytes) override { relay_.on_origin_data(bytes); }
  void on_end(http::Headers trailers) override { relay_.on_origin_end(std::move(trailers)); }
  void on_abort(const std::string& why) override { relay_.on_origin_abort(why); }
  void on_writable() override { relay_.give_back_to_guest(); }

 private:
  ExchangeRelay& relay_;
};

ExchangeRelay::ExchangeRelay(Context context, const Origin& origin, OriginPool::Wire wire,
                             http::RequestHead head, std::unique_ptr<http::ServerStream> stream,
                             const Denial* refusal)
    : context_(std::move(context)),
      origin_(origin),
      wire_(wire),
      head_(std::move(head)),
      refusal_(refusal),
      guest_side_(std::make_unique<GuestSide>(*this)),
      origin_side_(std::make_unique<OriginSide>(*this)),
      guest_(std::move(stream)),
      counted_(context_.holding),
      deadline_(context_.loop, [this] {
        if (state_ == State::kSwallowing) return end("");
        if (answer_begun_) return fail("nothing came or went for too long");
        if (state_ == State::kHolding)
          return deny({408,
                       codes::kBadRequest,
                       {},
                       "the request did not come far enough to be judged",
                       "Send it again."});
        deny(failed(504, codes::kUnreachable, exchange_->route(), origin_.asked.host + " does not answer"));
      }) {
  guest_->set_receiver(guest_side_.get());
  crossing_.kind = Crossing::Kind::kRequest;
  crossing_.scheme = head_.scheme;
  crossing_.host = origin_.asked.host;
  crossing_.port = origin_.asked.port;
  crossing_.method = head_.method;
  crossing_.path = head_.target.substr(0, std::min(head_.target.find('?'), kMostPath));
  crossing_.source_port = origin_.source_port;
  crossing_.started_us = now_us();
  crossing_.bytes_out = head_.method.size() + head_.target.size() + size_of(head_.headers);
  if (const auto* accept = http::find_header(head_.headers, "Accept"))
    accept_ = accept->value.substr(0, 1024);
}

ExchangeRelay::~ExchangeRelay() {
  if (state_ == State::kOver) return;
  crossing_.detail = "the proxy ended";
  tell(crossing_.verdict.empty() ? "failed" : crossing_.verdict.c_str());
}

void ExchangeRelay::start() {
  if (refusal_) {
    const auto alarm = context_.guard.alarm_in(head_);
    return deny(alarm ? *alarm : *refusal_);
  }
  if (context_.spend && !context_.spend(crossing_.bytes_out)) {
    return deny(failed(403, codes::kLimitBytes, {}, "this sandbox has used up its bytes of network"));
  }
  exchange_ = context_.guard.exchange(origin_);
  exchange_->admit(head_, [this](std::optional<Denial> denial) { admitted(std::move(denial)); });
}

void ExchangeRelay::admitted(std::optional<Denial> denial) {
  if (state_ != State::kAdmitting) return;
  const Route& route = exchange_->route();
  crossing_.rule = route.rule;
  crossing_.credential = route.credential;
  if (denial) return deny(*denial);
  Filter* filter = exchange_->request_body();
  state_ = filter && filter->decides() ? State::kHolding : State::kConnecting;
  if (state_ == State::kHolding) deadline_.set(context_.times.holding);
  if (state_ == State::kHolding && head_.expects_continue) {
    // Who decides by the body must see it first.
    head_.expects_continue = false;
    guest_->send_response({100, {}, {}});
  }
  const std::string early = std::exchange(held_, {});
  if (state_ == State::kConnecting) connect();
  if (!early.empty()) {
    guest_owed_ -= std::min(guest_owed_, early.size());
    crossing_.bytes_out -= early.size();
    on_guest_data(early);
  }
  if (guest_ended_ && state_ != State::kSwallowing && state_ != State::kOver) {
    guest_ended_ = false;
    on_guest_end(std::move(trailers_));
  }
}

void ExchangeRelay::connect() {
  state_ = State::kConnecting;
  ++tries_;
  deadline_.set(kConnectTime);  // the dialer has its own; this is of those who wait for a free connection
  const auto wire = head_.upgrade.empty() ? wire_ : OriginPool::Wire::kHttp1;
  attempt_ = context_.pool.open(
      exchange_->route(), wire, head_, *origin_side_,
      [this](OriginPool::Opened opened) { connected(std::move(opened)); },
      [this](const Denial& denial) { deny(denial); });
}

void ExchangeRelay::connected(OriginPool::Opened opened) {
  to_origin_ = std::move(opened.stream);
  used_before_ = opened.used_before;
  crossing_.address = std::move(opened.address);
  state_ = State::kRelaying;
  set_deadline();
  if (!held_.empty()) {
    const std::string bytes = std::exchange(held_, {});
    body_sent_ = true;
    to_origin_->send_data(bytes);
  }
  end_to_origin();
  give_back_to_guest();
}

void ExchangeRelay::set_deadline() {
  if (state_ != State::kRelaying) return;
  if (tunnel_) return deadline_.set(context_.times.tunnel);
  if (answer_begun_) return deadline_.set(context_.times.idle);
  deadline_.set(guest_ended_ ? context_.times.answer : context_.times.idle);
}

bool ExchangeRelay::spend(uint64_t bytes) {
  if (!context_.spend || context_.spend(bytes)) return true;
  deny(failed(403, codes::kLimitBytes, exchange_->route(), "this sandbox has used up its bytes of network"));
  return false;
}

size_t ExchangeRelay::held_now() const {
  size_t out = held_.size() + beyond_mark(guest_.get()) + beyond_mark(to_origin_.get());
  if (!exchange_ || state_ == State::kAdmitting) return out;
  for (const Filter* filter : {exchange_->request_body(), exchange_->response_body(),
                               exchange_->websocket_out(), exchange_->websocket_in()})
    if (filter) out += filter->held();
  return out;
}

void ExchangeRelay::count_held() {
  if (state_ == State::kOver || state_ == State::kSwallowing || counted_.set(held_now())) return;
  Denial denial;
  denial.status = 503;
  denial.code = codes::kLimitHeld;
  denial.rule = crossing_.rule;
  denial.message = "this and other requests that wait are more than the sandbox's network can hold at once";
  denial.what_to_do = "Make fewer at once, and try again.";
  deny(denial);
}

void ExchangeRelay::on_guest_data(std::string_view bytes) {
  if (state_ == State::kOver) return;
  if (state_ == State::kSwallowing) {
    swallowed_ += bytes.size();
    guest_->consumed(bytes.size());
    if (swallowed_ > kMostSwallowed) end("");
    return;
  }
  crossing_.bytes_out += bytes.size();
  guest_owed_ += bytes.size();
  if (state_ == State::kAdmitting) {
    held_.append(bytes);  // bounded: nothing is given back
    return count_held();
  }
  if (!spend(bytes.size())) return;
  if (Filter* filter = tunnel_ ? exchange_->websocket_out() : exchange_->request_body()) {
    std::string out;
    if (const auto denial = filter->feed(bytes, out)) return deny(*denial);
    send_to_origin(out);
  } else {
    send_to_origin(bytes);
  }
  count_held();
}

void ExchangeRelay::send_to_origin(std::string_view bytes) {
  if (state_ == State::kHolding) {
    held_.append(bytes);
    // The filter says how much it holds back.
    guest_->consumed(std::exchange(guest_owed_, 0));
    if (!bytes.empty()) connect();
    return;
  }
  if (state_ == State::kConnecting) {
    held_.append(bytes);
    return;
  }
  if (!bytes.empty()) {
    body_sent_ = true;
    to_origin_->send_data(bytes);
  }
  set_deadline();
  give_back_to_guest();
}

void ExchangeRelay::give_back_to_guest() {
  count_held();
  if (state_ != State::kRelaying || !to_origin_ || to_origin_->buffered() > http::kHighWater) return;
  if (guest_owed_ > 0) guest_->consumed(std::exchange(guest_owed_, 0));
}

void ExchangeRelay::on_guest_end(http::Headers trailers) {
  if (state_ == State::kOver || guest_ended_) return;
  guest_ended_ = true;
  if (state_ == State::kSwallowing) return end("");
  trailers_ = std::move(trailers);
  if (state_ == State::kAdmitting) return;
  Filter* filter = tunnel_ ? exchange_->websocket_out() : exchange_->request_body();
  std::string out;
  if (filter) {
    if (const auto denial = filter->finish(out)) return deny(*denial);
  }
  if (!tunnel_) {
    if (const auto denial = exchange_->request_trailers(trailers_)) return deny(*denial);
  }
  if (filter && !tunnel_) crossing_.detail = filter->detail();
  if (!out.empty()) send_to_origin(out);
  count_held();
  if (state_ == State::kSwallowing || state_ == State::kOver) return;
  if (state_ == State::kHolding) connect();
  end_to_origin();
  set_deadline();
  finish_if_done();
}

void ExchangeRelay::end_to_origin() {
  if (state_ != State::kRelaying || !guest_ended_ || end_told_) return;
  end_told_ = true;
  if (tunnel_ || head_.body.kind != http::Body::Kind::kNone) to_origin_->send_end(trailers_);
}

void ExchangeRelay::on_response(http::ResponseHead head) {
  if (state_ != State::kRelaying) return;
  const uint64_t size = size_of(head.headers);
  crossing_.bytes_in += size;
  if (!spend(size)) return;
  if (const auto denial = exchange_->answer(head)) return deny(*denial);
  const bool final = head.status >= 200 || head.status == 101;
  if (final) {
    answer_begun_ = true;
    crossing_.status = head.status;
  }
  if (head.status == 101) {
    tunnel_ = true;
    guest_ended_ = false;
    end_told_ = false;
  }
  // An answer without a body is whole with its head.
  if (final && head.status != 101 && head.body.kind == http::Body::Kind::kNone) answer_ended_ = true;
  guest_->send_response(head);
  set_deadline();
}

void ExchangeRelay::on_origin_data(std::string_view bytes) {
  if (state_ != State::kRelaying || !answer_begun_) return;
  crossing_.bytes_in += bytes.size();
  origin_owed_ += bytes.size();
  if (!spend(bytes.size())) return;
  Filter* filter = tunnel_ ? exchange_->websocket_in() : exchange_->response_body();
  if (filter) {
    std::string out;
    if (const auto denial = filter->feed(bytes, out)) return deny(*denial);
    guest_->send_data(out);
  } else {
    guest_->send_data(bytes);
  }
  count_held();
  set_deadline();
  give_back_to_origin();
}

void ExchangeRelay::give_back_to_origin() {
  if (state_ != State::kRelaying || !to_origin_ || guest_->buffered() > http::kHighWater) return;
  if (origin_owed_ > 0) to_origin_->consumed(std::exchange(origin_owed_, 0));
}

void ExchangeRelay::on_origin_end(http::Headers trailers) {
  if (state_ != State::kRelaying) return;
  origin_ended_ = true;
  Filter* filter = tunnel_ ? exchange_->websocket_in() : exchange_->response_body();
  std::string out;
  if (filter) {
    if (const auto denial = filter->finish(out)) return deny(*denial);
  }
  if (!tunnel_) {
    if (const auto denial = exchange_->answer_trailers(trailers)) return deny(*denial);
  }
  if (!answer_ended_) {
    guest_->send_data(out);
    guest_->send_end(trailers);
    answer_ended_ = true;
  }
  finish_if_done();
}

void ExchangeRelay::on_origin_abort(const std::string& why) {
  if (state_ != State::kRelaying) return;
  if (answer_begun_) return fail("the origin's side: " + why);
  if (try_again()) return;
  deny(failed(502, codes::kUnreachable, exchange_->route(), origin_.asked.host + ": " + why));
}

// A kept connection that ended while it was used again, and nothing of the request can have had an effect
// twice.
bool ExchangeRelay::try_again() {
  if (!used_before_ || tries_ >= kMostTries || body_sent_ || head_.body.kind != http::Body::Kind::kNone ||
      !is_idempotent(head_.method) || crossing_.bytes_in > 0) {
    return false;
  }
  to_origin_.reset();
  connect();
  return true;
}

void ExchangeRelay::deny(const Denial& denial) {
  if (state_ == State::kOver || state_ == State::kSwallowing) return;
  crossing_.verdict = denial.status < 500 ? "denied" : "failed";
  crossing_.code = denial.code;
  if (!denial.rule.empty()) crossing_.rule = denial.rule;
  crossing_.detail = denial.message;
  if (denial.alarm) {
    Crossing alarm = crossing_;
    alarm.kind = Crossing::Kind::kAlarm;
    alarm.credential = denial.credential;
    alarm.detail.resize(std::min(alarm.detail.size(), kMostDetail));
    context_.record(alarm);
  }
  attempt_.reset();
  if (to_origin_) to_origin_->abort();
  if (answer_begun_) {
    guest_->abort();
    return end("");
  }
  answer_with(denial);
}

void ExchangeRelay::answer_with(const Denial& denial) {
  const Denial::Answer answer = answer_to(denial, {accept_, origin_.asked.host, origin_.asked.port});
  crossing_.status = answer.status;
  answer_begun_ = answer_ended_ = true;
  state_ = State::kSwallowing;
  guest_->send_response({answer.status, answer.headers, {http::Body::Kind::kLength, answer.body.size()}});
  guest_->send_data(answer.body);
  guest_->send_end({});
  const bool more = !guest_ended_ && head_.body.kind != http::Body::Kind::kNone && !head_.expects_continue;
  if (!more) return end("");
  deadline_.set(std::chrono::seconds(5));
  swallowed_ = guest_owed_ + held_.size();
  held_ = {};
  // What its filters hold is nobody's any more; they may be who said no.
  let_go_ = context_.loop.once(std::chrono::milliseconds(0), [this] {
    exchange_.reset();
    (void)counted_.set(0);
  });
  guest_->consumed(std::exchange(guest_owed_, 0));
}

// One of the sides is gone.
void ExchangeRelay::fail(const std::string& why) {
  if (state_ == State::kOver) return;
  if (state_ == State::kSwallowing) return end("");
  crossing_.detail = why;
  attempt_.reset();
  if (to_origin_) to_origin_->abort();
  guest_->abort();
  end("failed");
}

void ExchangeRelay::finish_if_done() {
  if (state_ != State::kRelaying || !origin_ended_ || !answer_ended_) return;
  // An answer that came before the request's end leaves the rest of it unread.
  if (tunnel_ && !guest_ended_) return;
  end("allowed");
}

// Nothing of `this` is used afterwards, but it lives on until the loop comes round.
void ExchangeRelay::end(const char* verdict) {
  if (state_ == State::kOver) return;
  tell(crossing_.verdict.empty() ? verdict : crossing_.verdict.c_str());
  state_ = State::kOver;
  deadline_.clear();
  attempt_.reset();
  context_.over(this);
}

void ExchangeRelay::tell(const char* verdict) {
  state_ = State::kOver;
  crossing_.verdict = verdict;
  crossing_.took_us = now_us() - crossing_.started_us;
  if (const Filter* body = exchange_ ? exchange_->request_body() : nullptr; body && crossing_.detail.empty())
    crossing_.detail = body->detail();
  crossing_.detail.resize(std::min(crossing_.detail.size(), kMostDetail));
  if (exchange_) crossing_.in_body = exchange_->in_body();
  context_.record(crossing_);
}

}  // namespace firestop::egress
