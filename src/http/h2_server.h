// HTTP/2 towards the guest: every request becomes a call of the handler.
#pragma once

#include "http/h2_session.h"

namespace firestop::http {

class H2Server : public H2Session {
 public:
  // `handler` outlives it. `closed` is called once, from the loop, and may destroy the session.
  H2Server(Loop& loop, std::unique_ptr<ByteStream> bytes, RequestHandler& handler,
           std::function<void(const std::string& why)> closed);

 private:
  class Response;
  void on_head(const std::shared_ptr<Entry>& entry, bool ended) override;

  RequestHandler& handler_;
};

}  // namespace firestop::http
