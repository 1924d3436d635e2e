#include "http/h2_server.h"

#include "http/h2_native.h"

namespace firestop::http {

class H2Server::Response : public Handle<ServerStream> {
 public:
  using Handle::Handle;

  void send_response(const ResponseHead& head) override {
    Entry& stream = entry();
    if (!stream.session || stream.has_provider || stream.end) return;
    auto& session = static_cast<H2Server&>(*stream.session);
    const Headers fields = to_h2(head);
    const NativeFields native(fields);
    if (head.status < 200) {
      nghttp2_submit_headers(session.native(), NGHTTP2_FLAG_NONE, stream.id, nullptr, native.data(),
                             native.size(), nullptr);
    } else if (head.body.kind == Body::Kind::kNone) {
      stream.end = true;
      nghttp2_submit_response(session.native(), stream.id, native.data(), native.size(), nullptr);
    } else {
      stream.has_provider = true;
      nghttp2_data_provider provider{{.ptr = &stream}, read_data};
      nghttp2_submit_response(session.native(), stream.id, native.data(), native.size(), &provider);
    }
    session.flush_soon();
  }
};

H2Server::H2Server(Loop& loop, std::unique_ptr<ByteStream> bytes, RequestHandler& handler,
                   std::function<void(const std::string&)> closed)
    : H2Session(loop, std::move(bytes), Side::kServer, std::move(closed)), handler_(handler) {
  start({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMostStreams},
         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
         {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2FieldList::kMostBytes}});
}

void H2Server::on_head(const std::shared_ptr<Entry>& entry, bool ended) {
  auto head = request_from_h2(entry->fields, ended);
  if (!head) return reset(*entry, NGHTTP2_PROTOCOL_ERROR);
  entry->head_seen = true;
  handler_.on_request(std::move(*head), std::make_unique<Response>(entry));
}

}  // namespace firestop::http
