// TLS (RFC 8446, RFC 5246) over another stream, either side of it, by OpenSSL.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "http/byte_stream.h"

namespace firestop::http {

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslPtr = std::unique_ptr<SSL, SslFree>;
using SslContextPtr = std::unique_ptr<SSL_CTX, SslFree>;

// What both sides' contexts have in common: TLS 1.2 and 1.3, no compression, no renegotiation, buffers only
// while they are used. Aborts when there is no memory.
SslContextPtr make_tls_context(const SSL_METHOD* method);

class TlsStream final : public ByteStream {
 public:
  // Of a client: the server's name is in `ssl`, which verifies it. The state (SSL_set_accept_state or
  // SSL_set_connect_state) is set.
  TlsStream(Loop& loop, std::unique_ptr<ByteStream> under, SslPtr ssl);
  ~TlsStream() override;

  // Calls `done` once, from the loop; must be done before all else. Errors: "tls.handshake", with what
  // OpenSSL says of it, "tls.untrusted" when the other side's certificate is not good.
  void handshake(std::function<void(Result<void>)> done);
  std::string protocol() const;  // ALPN's choice, "" if none
  SSL* ssl() const { return ssl_.get(); }

  Io read(char* buffer, size_t size) override;
  Io write(std::string_view bytes) override;
  void shutdown_write() override;
  void break_on_close() override;
  void want(std::function<void()> readable, std::function<void()> writable) override;
  void pause_reading(bool paused) override;
  void wait_writable(bool wait) override;

 private:
  struct Bio;
  void go_on();
  void update();
  void on_readable();
  Io outcome(int ok, size_t bytes);

  Loop& loop_;
  std::unique_ptr<ByteStream> under_;
  State under_state_ = State::kOk;  // of the last read below
  SslPtr ssl_;
  std::function<void(Result<void>)> done_;
  std::function<void()> readable_, writable_;
  bool reading_ = false, writing_ = false;
  bool handshaking_ = false;
  bool read_wants_write_ = false;
  bool in_half_ = false;  // what OpenSSL holds is no whole record
  bool dead_ = false;     // OpenSSL forbids all calls after a fatal error
  Loop::Handle soon_;
};

}  // namespace firestop::http
