#include "http/h1_client.h"

namespace firestop::http {

using codec::Http1Connection;
using codec::Http1Framing;

H1Client::H1Client(Loop& loop, std::unique_ptr<ByteStream> bytes, Closed closed, std::function<void()> idle)
    : H1Connection(loop, std::move(bytes), reader_, std::move(closed)), idle_(std::move(idle)) {
  start();
}

bool H1Client::can_open() const {
  return !failed() && !finishing() && !entry() && !shutting_down() && !input_ended() && reader_.idle();
}

Result<std::unique_ptr<ClientStream>> H1Client::open(const RequestHead& head, StreamReceiver& receiver) {
  if (!can_open()) return fail("http.cannot_open", "the connection to the origin is in use");
  const uint16_t port = head.scheme == "https" ? 443 : 80;
  const std::string host = to_string(head.authority, port);
  Headers headers = head.headers;
  if (head.expects_continue) headers.push_back({"Expect", "100-continue"});
  Http1Framing framing;
  if (head.body.kind == Body::Kind::kLength) framing = {Http1Framing::Kind::kLength, head.body.length};
  if (head.body.kind == Body::Kind::kUnknown) framing.kind = Http1Framing::Kind::kChunked;
  const bool upgrade = !head.upgrade.empty();
  TRY(codec::append_http1_request(out(), {head.method, head.target, host}, headers, framing,
                                  upgrade ? Http1Connection::kUpgrade : Http1Connection::kKeep));
  reader_.expect(head.method, upgrade);
  begin_sending(framing);
  interim_ = 0;
  auto entry = std::make_shared<Entry>();
  entry->connection = this;
  entry->receiver = &receiver;
  entry->end = head.body.kind == Body::Kind::kNone;
  adopt(entry);
  work_soon();
  return std::make_unique<Handle<ClientStream>>(std::move(entry));
}

void H1Client::on_head() {
  codec::Http1Response response = reader_.take_response();
  const auto present = entry();
  if (!present) return break_off("an answer to nothing");
  if (response.status < 200 && ++interim_ > kMostInterim)
    return break_off("the origin sends interim answers without end");
  keep_alive_ = response.keep_alive;
  ResponseHead head;
  head.status = response.status;
  head.headers = std::move(response.fields);
  switch (response.framing.kind) {
    case Http1Framing::Kind::kNone:
      break;
    case Http1Framing::Kind::kLength:
      head.body = {Body::Kind::kLength, response.framing.length};
      break;
    default:
      head.body.kind = Body::Kind::kUnknown;
  }
  if (head.status == 101) {
    become_tunnel();
    present->end = false;
  }
  if (present->receiver) present->receiver->on_response(std::move(head));
}

void H1Client::on_exchange_over() {
  drop_entry();
  if (!keep_alive_ || shutting_down() || input_ended()) return finish();
  if (idle_) idle_();
}

void H1Client::on_refused(const Error& why) {
  break_off(entry() ? "the origin's answer is not HTTP: " + why.message : "");
}

void H1Client::on_let_go(Entry& entry) {
  if (entry.end && entry.remote_ended) return;
  break_off("");
}

}  // namespace firestop::http
