#include "http/tls_stream.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <cstdlib>

namespace firestop::http {
namespace {

std::string last_error() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason ? reason : "the connection ended";
}

}  // namespace

SslContextPtr make_tls_context(const SSL_METHOD* method) {
  SslContextPtr context(SSL_CTX_new(method));
  if (!context) std::abort();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context.get(), 1);  // else each record takes two reads
  return context;
}

// OpenSSL's way to the stream below.
struct TlsStream::Bio {
  static TlsStream& self(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

  static int write(BIO* bio, const char* data, size_t size, size_t* written) {
    BIO_clear_retry_flags(bio);
    const Io io = self(bio).under_->write({data, size});
    *written = io.bytes;
    if (io.state == State::kWouldBlock) BIO_set_retry_write(bio);
    return io.state == State::kOk ? 1 : 0;
  }

  static int read(BIO* bio, char* data, size_t size, size_t* taken) {
    BIO_clear_retry_flags(bio);
    TlsStream& tls = self(bio);
    const Io io = tls.under_->read(data, size);
    *taken = io.bytes;
    tls.under_state_ = io.state;
    if (io.state == State::kWouldBlock) BIO_set_retry_read(bio);
    return io.state == State::kOk ? 1 : 0;
  }

  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return self(bio).under_state_ == State::kEnd ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "firestop");
      if (!fresh) std::abort();
      BIO_meth_set_write_ex(fresh, write);
      BIO_meth_set_read_ex(fresh, read);
      BIO_meth_set_ctrl(fresh, control);
      return fresh;
    }();
    return made;
  }
};

TlsStream::TlsStream(Loop& loop, std::unique_ptr<ByteStream> under, SslPtr ssl)
    : loop_(loop), under_(std::move(under)), ssl_(std::move(ssl)) {
  BIO* bio = BIO_new(Bio::method());
  if (!bio) std::abort();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
}

TlsStream::~TlsStream() = default;

void TlsStream::handshake(std::function<void(Result<void>)> done) {
  done_ = std::move(done);
  handshaking_ = true;
  under_->want([this] { on_readable(); },
               [this] {
                 if (handshaking_) return go_on();
                 if (read_wants_write_) {
                   read_wants_write_ = false;
                   update();
                   if (reading_) readable_();
                 } else if (writing_) {
                   writable_();
                 }
               });
  // What lies below may have been faster: then bytes behind the handshake wait for this.
  soon_ = loop_.once(std::chrono::milliseconds(0), [this] {
    soon_.reset();
    on_readable();
  });
}

void TlsStream::go_on() {
  if (!handshaking_) return;
  ERR_clear_error();
  const int rc = SSL_do_handshake(ssl_.get());
  const int error = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), rc);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    under_->pause_reading(error == SSL_ERROR_WANT_WRITE);
    under_->wait_writable(error == SSL_ERROR_WANT_WRITE);
    return;
  }
  handshaking_ = false;
  under_->pause_reading(true);
  under_->wait_writable(false);
  Result<void> result;
  if (rc != 1) {
    dead_ = true;
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (verdict != X509_V_OK) {
      ERR_clear_error();
      result = fail("tls.untrusted",
                    std::string("its certificate is not good: ") + X509_verify_cert_error_string(verdict));
    } else {
      result = fail("tls.handshake", "TLS: " + last_error());
    }
  }
  const auto done = std::move(done_);
  done(std::move(result));
}

std::string TlsStream::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {name, name + size};
}

ByteStream::Io TlsStream::outcome(int ok, size_t bytes) {
  if (ok == 1) return {State::kOk, bytes};
  switch (SSL_get_error(ssl_.get(), ok)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return {State::kWouldBlock, 0};
    case SSL_ERROR_ZERO_RETURN:
      return {State::kEnd, 0};
    default:
      dead_ = true;
      ERR_clear_error();
      return {State::kFailed, 0};
  }
}

ByteStream::Io TlsStream::read(char* buffer, size_t size) {
  if (dead_) return {State::kFailed, 0};
  ERR_clear_error();
  size_t bytes = 0;
  const int ok = SSL_read_ex(ssl_.get(), buffer, size, &bytes);
  in_half_ = ok != 1;
  if (ok != 1 && SSL_want_write(ssl_.get()) && SSL_get_error(ssl_.get(), ok) == SSL_ERROR_WANT_WRITE) {
    read_wants_write_ = true;
    update();
  }
  return outcome(ok, bytes);
}

ByteStream::Io TlsStream::write(std::string_view bytes) {
  if (dead_) return {State::kFailed, 0};
  ERR_clear_error();
  size_t written = 0;
  const int ok = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
  return outcome(ok, written);
}

void TlsStream::shutdown_write() {
  if (!dead_) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  under_->shutdown_write();
}

void TlsStream::break_on_close() {
  under_->break_on_close();
}

void TlsStream::want(std::function<void()> readable, std::function<void()> writable) {
  readable_ = std::move(readable);
  writable_ = std::move(writable);
  reading_ = true;
  update();
}

void TlsStream::pause_reading(bool paused) {
  reading_ = !paused;
  update();
}

void TlsStream::wait_writable(bool wait) {
  writing_ = wait;
  update();
}

void TlsStream::on_readable() {
  if (handshaking_) return go_on();
  if (reading_) readable_();
  update();
}

void TlsStream::update() {
  under_->pause_reading(!reading_);
  under_->wait_writable(writing_ || read_wants_write_);
  // Bytes that are no longer in the socket do not make it readable.
  const bool held = !in_half_ && SSL_has_pending(ssl_.get()) == 1;
  if (!reading_ || !held) {
    soon_.reset();
  } else if (!soon_) {
    soon_ = loop_.once(std::chrono::milliseconds(0), [this] {
      soon_.reset();
      on_readable();
    });
  }
}

}  // namespace firestop::http
