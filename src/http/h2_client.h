// HTTP/2 towards an origin. Upgrades (WebSocket) go over HTTP/1.1 and are not opened here.
#pragma once

#include "base/result.h"
#include "http/h2_session.h"

namespace firestop::http {

class H2Client : public H2Session {
 public:
  // `closed` is called once, from the loop, and may destroy the session; `idle` when the last stream has
  // ended.
  H2Client(Loop& loop, std::unique_ptr<ByteStream> bytes, std::function<void(const std::string& why)> closed,
           std::function<void()> idle);

  // Whether the origin would take one more stream now.
  bool can_open() const;
  // Error: "http.cannot_open" when it cannot.
  Result<std::unique_ptr<ClientStream>> open(const RequestHead& head, StreamReceiver& receiver);

 private:
  void on_head(const std::shared_ptr<Entry>& entry, bool ended) override;
  void on_stream_gone() override;

  std::function<void()> idle_;
};

}  // namespace firestop::http
