#include "http/h1_server.h"

#include "http/denial.h"

namespace firestop::http {

using codec::Http1Connection;
using codec::Http1Framing;

class H1Server::Response : public Handle<ServerStream> {
 public:
  using Handle::Handle;
  void send_response(const ResponseHead& head) override {
    // SAFETY: an H1Server makes these for itself only.
    if (entry().connection) static_cast<H1Server&>(*entry().connection).send_response(entry(), head);
  }
};

int status_of_refusal(const Error& why) {
  if (why.code == "http.too_large") return 431;
  if (why.code == "http.version") return 505;
  return why.code == "http.expectation" ? 417 : 400;
}

H1Server::H1Server(Loop& loop, std::unique_ptr<ByteStream> bytes, RequestHandler& handler, Options options,
                   Closed closed)
    : H1Connection(loop, std::move(bytes), reader_, std::move(closed)),
      handler_(handler),
      options_(std::move(options)) {
  wait_for_request();
  start();
}

void H1Server::wait_for_request() {
  head_started_ = false;
  deadline().set(options_.idle);
}

void H1Server::on_partial_head() {
  if (std::exchange(head_started_, true)) return;
  deadline().set(options_.head_time);
}

bool H1Server::may_read_on() const {
  if (!entry()) return !shutting_down();
  return !entry()->remote_ended && !upgrade_open_;
}

bool H1Server::body_is_due() const {
  return entry() && !entry()->remote_ended && !is_tunnel() && !upgrade_open_;
}

void H1Server::on_written() {
  if (!entry()) return deadline().set(options_.idle);
  body_is_due() ? deadline().set(stall()) : deadline().clear();
}

void H1Server::on_head() {
  deadline().clear();
  request_ = reader_.take_request();
  keep_alive_ = request_.keep_alive;
  continue_due_ = request_.expects_continue;
  upgrade_open_ = !request_.upgrade.empty();
  if (request_.method == "CONNECT" || (!request_.scheme.empty() && request_.scheme != options_.scheme)) {
    return on_refused({"http.malformed", "a request for another kind of connection"});
  }
  const uint16_t port = options_.scheme == "https" ? 443 : 80;
  RequestHead head;
  head.method = request_.method;
  head.scheme = options_.scheme;
  head.authority = {std::move(request_.authority.host),
                    request_.authority.port ? request_.authority.port : port};
  head.target = std::move(request_.target);
  head.headers = std::move(request_.fields);
  head.upgrade = request_.upgrade;
  head.expects_continue = request_.expects_continue;
  const auto kind = request_.framing.kind;
  head.body.length = request_.framing.length;
  head.body.kind = kind == Http1Framing::Kind::kNone     ? Body::Kind::kNone
                   : kind == Http1Framing::Kind::kLength ? Body::Kind::kLength
                                                         : Body::Kind::kUnknown;
  auto entry = std::make_shared<Entry>();
  entry->connection = this;
  adopt(entry);
  handler_.on_request(std::move(head), std::make_unique<Response>(std::move(entry)));
}

// May end the connection with the answer, where nothing else says its end.
Http1Framing H1Server::answer_framing(const ResponseHead& head) {
  if (head.status < 200 || head.status == 204) return {};
  switch (head.body.kind) {
    case Body::Kind::kNone:
      return {has_no_body(head.status) ? Http1Framing::Kind::kNone : Http1Framing::Kind::kLength, 0};
    case Body::Kind::kLength:
      return {Http1Framing::Kind::kLength, head.body.length};
    case Body::Kind::kUnknown:
      break;
  }
  if (!request_.version_1_0) return {Http1Framing::Kind::kChunked, 0};
  if (has_no_body(head.status)) return {};
  keep_alive_ = false;
  return {Http1Framing::Kind::kUntilClose, 0};
}

bool H1Server::has_no_body(int status) const {
  return status < 200 || status == 204 || status == 304 || request_.method == "HEAD";
}

void H1Server::send_response(Entry& entry, const ResponseHead& head) {
  if (failed() || entry.head_sent || entry.end) return;
  const bool interim = head.status < 200 && head.status != 101;
  if (interim && request_.version_1_0) return;
  if (head.status == 100) continue_due_ = false;
  const Http1Framing framing = answer_framing(head);
  // The client may or may not send the body that it asked about: nothing that follows could be trusted.
  if (!interim && (continue_due_ || shutting_down())) keep_alive_ = false;
  Http1Connection connection = keep_alive_ || interim ? Http1Connection::kKeep : Http1Connection::kClose;
  if (head.status == 101) connection = Http1Connection::kUpgrade;
  if (!codec::append_http1_response(out(), head.status, head.headers, framing, connection)) {
    return break_off("an answer that cannot be written");
  }
  if (!interim) {
    entry.head_sent = true;
    upgrade_open_ = false;
    const bool bodiless = has_no_body(head.status);
    begin_sending(bodiless ? Http1Framing{} : framing);
    if (head.status == 101) {
      reader_.become_tunnel();
      become_tunnel();
    } else if (bodiless || head.body.kind == Body::Kind::kNone) {
      send_end(entry, {});
    }
  }
  work_soon();
}

void H1Server::on_exchange_over() {
  drop_entry();
  if (!keep_alive_ || shutting_down()) return finish();
  wait_for_request();
  work_soon();
}

void H1Server::on_let_go(Entry& entry) {
  if (!entry.end) return break_off("the exchange was broken off");
  if (!entry.remote_ended) {
    // The rest of the request is not wanted, and to read it would be work for nothing.
    drop_entry();
    finish();
  }
}

void H1Server::on_refused(const Error& why) {
  const auto present = entry();
  const bool answer = why.code != "http.truncated" && !(present && present->head_sent);
  if (options_.refused) options_.refused(why, answer ? status_of_refusal(why) : 0);
  if (!answer) return break_off(present ? why.message : "");
  if (present) {
    drop_entry();
    if (present->receiver) present->receiver->on_abort(why.message);
  }
  Denial denial;
  denial.status = status_of_refusal(why);
  denial.code = options_.refusal_code;
  denial.message = why.message;
  const Denial::Answer text = answer_to(denial, {});
  const Http1Framing framing{Http1Framing::Kind::kLength, text.body.size()};
  if (!codec::append_http1_response(out(), text.status, text.headers, framing, Http1Connection::kClose)) {
    return break_off(why.message);
  }
  out().append(text.body);
  finish();
}

}  // namespace firestop::http
