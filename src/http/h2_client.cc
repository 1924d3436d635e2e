#include "http/h2_client.h"

#include "http/h1_client.h"
#include "http/h2_native.h"

namespace firestop::http {

H2Client::H2Client(Loop& loop, std::unique_ptr<ByteStream> bytes,
                   std::function<void(const std::string&)> closed, std::function<void()> idle)
    : H2Session(loop, std::move(bytes), Side::kClient, std::move(closed)), idle_(std::move(idle)) {
  start({{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
         {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2FieldList::kMostBytes}});
}

bool H2Client::can_open() const {
  if (failed() || nghttp2_session_check_request_allowed(native()) == 0) return false;
  return streams() < std::min(kMostStreams, nghttp2_session_get_remote_settings(
                                                native(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS));
}

Result<std::unique_ptr<ClientStream>> H2Client::open(const RequestHead& head, StreamReceiver& receiver) {
  if (!can_open()) return fail("http.cannot_open", "the origin takes no more streams on this connection");
  const Headers fields = to_h2(head);
  const NativeFields native_fields(fields);
  auto entry = std::make_shared<Entry>();
  entry->session = this;
  entry->receiver = &receiver;
  entry->has_provider = head.body.kind != Body::Kind::kNone;
  entry->end = !entry->has_provider;
  nghttp2_data_provider provider{{.ptr = entry.get()}, read_data};
  const int32_t id = nghttp2_submit_request(native(), nullptr, native_fields.data(), native_fields.size(),
                                            entry->has_provider ? &provider : nullptr, nullptr);
  if (id < 0) return fail("http.cannot_open", std::string("HTTP/2: ") + nghttp2_strerror(id));
  adopt(id, entry);
  flush_soon();
  return std::make_unique<Handle<ClientStream>>(entry);
}

void H2Client::on_head(const std::shared_ptr<Entry>& entry, bool ended) {
  auto head = response_from_h2(entry->fields, ended);
  if (!head) return reset(*entry, NGHTTP2_PROTOCOL_ERROR);
  if (head->status < 200 && ++entry->interim > H1Client::kMostInterim)
    return reset(*entry, NGHTTP2_ENHANCE_YOUR_CALM);
  entry->head_seen = head->status >= 200;
  if (entry->receiver) entry->receiver->on_response(std::move(*head));
}

void H2Client::on_stream_gone() {
  if (streams() == 0 && idle_) idle_();
}

}  // namespace firestop::http
