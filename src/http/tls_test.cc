#include <gtest/gtest.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "http/h1_client.h"
#include "http/h1_server.h"
#include "http/socket_stream.h"
#include "http/tls_stream.h"

namespace firestop::http {
namespace {

using std::chrono::milliseconds;

// A certificate for "a.example", signed by itself.
struct Identity {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  Identity() {
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    // SAFETY: OpenSSL reads characters as bytes.
    const auto* name = reinterpret_cast<const unsigned char*>("a.example");
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, name, -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:a.example");
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    X509_sign(certificate, key, EVP_sha256());
  }
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;
  ~Identity() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

class TlsTest : public ::testing::Test, public RequestHandler, public StreamReceiver {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    a_ = UniqueFd(pair[0]);
    b_ = UniqueFd(pair[1]);
    server_context_ = make_tls_context(TLS_server_method());
    SSL_CTX_use_certificate(server_context_.get(), identity_.certificate);
    SSL_CTX_use_PrivateKey(server_context_.get(), identity_.key);
    client_context_ = make_tls_context(TLS_client_method());
    SSL_CTX_set_verify(client_context_.get(), SSL_VERIFY_PEER, nullptr);
  }
  void TearDown() override {
    answer_.reset();
    stream_.reset();
    client_.reset();
    server_.reset();
  }
  void trust() { X509_STORE_add_cert(SSL_CTX_get_cert_store(client_context_.get()), identity_.certificate); }
  std::unique_ptr<TlsStream> server_stream(std::string already_read = {}) {
    SslPtr ssl(SSL_new(server_context_.get()));
    SSL_set_accept_state(ssl.get());
    return std::make_unique<TlsStream>(
        loop_, std::make_unique<SocketStream>(loop_, std::move(a_), std::move(already_read)), std::move(ssl));
  }
  std::unique_ptr<TlsStream> client_stream(const char* name = "a.example") {
    SslPtr ssl(SSL_new(client_context_.get()));
    SSL_set_connect_state(ssl.get());
    SSL_set1_host(ssl.get(), name);
    return std::make_unique<TlsStream>(loop_, std::make_unique<SocketStream>(loop_, std::move(b_)),
                                       std::move(ssl));
  }
  bool run_until(const std::function<bool()>& done) {
    bool late = false;
    const auto tick = loop_.every(milliseconds(1), [&] {
      if (done()) loop_.stop();
    });
    const auto limit = loop_.once(std::chrono::seconds(10), [&] {
      late = true;
      loop_.stop();
    });
    if (!done()) loop_.run();
    return !late;
  }
  // Handshakes of both; the client's result.
  Result<void> shake(TlsStream& server, TlsStream& client) {
    std::optional<Result<void>> of_server, of_client;
    server.handshake([&](Result<void> result) { of_server = std::move(result); });
    client.handshake([&](Result<void> result) { of_client = std::move(result); });
    EXPECT_TRUE(run_until([&] { return of_server && of_client; }));
    return of_client.value_or(fail("test", "no result"));
  }

  void on_request(RequestHead head, std::unique_ptr<ServerStream> stream) override {
    target_ = head.target;
    answer_ = std::move(stream);
    answer_->set_receiver(this);
    answer_->send_response({200, {}, {Body::Kind::kLength, body_.size()}});
    answer_->send_data(body_);
    answer_->send_end({});
  }
  void on_data(std::string_view bytes) override {
    got_ += bytes;
    if (stream_) stream_->consumed(bytes.size());
  }
  void on_end(Headers) override { ++ends_; }
  void on_abort(const std::string& why) override { aborted_ = why; }
  void on_writable() override {}

  Loop loop_;
  Identity identity_;
  SslContextPtr server_context_, client_context_;
  UniqueFd a_, b_;
  std::unique_ptr<H1Server> server_;
  std::unique_ptr<H1Client> client_;
  std::unique_ptr<ServerStream> answer_;
  std::unique_ptr<ClientStream> stream_;
  std::string target_, body_, got_, aborted_;
  int ends_ = 0;
};

TEST_F(TlsTest, AnExchangeLargerThanAllBuffers) {
  trust();
  auto server = server_stream();
  auto client = client_stream();
  ASSERT_TRUE(shake(*server, *client));
  for (size_t i = 0; i < (3u << 20); ++i) body_.push_back(static_cast<char>(i * 7 >> 3));
  server_ = std::make_unique<H1Server>(loop_, std::move(server), *this, H1Server::Options{},
                                       [](const std::string&) {});
  client_ = std::make_unique<H1Client>(loop_, std::move(client), [](const std::string&) {}, [] {});
  auto opened = client_->open({"GET", "https", {"a.example", 443}, "/x", {}, "", false, {}}, *this);
  ASSERT_TRUE(opened);
  stream_ = std::move(*opened);
  EXPECT_TRUE(run_until([&] { return ends_ == 2; }));
  EXPECT_EQ(target_, "/x");
  EXPECT_TRUE(got_ == body_);
}

TEST_F(TlsTest, CertificatesThatAreNotTrusted) {
  auto server = server_stream();
  auto client = client_stream();
  const auto result = shake(*server, *client);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "tls.untrusted") << result.error().message;
}

TEST_F(TlsTest, ACertificateForAnotherName) {
  trust();
  auto server = server_stream();
  auto client = client_stream("b.example");
  const auto result = shake(*server, *client);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "tls.untrusted") << result.error().message;
}

TEST_F(TlsTest, NoTlsAtAll) {
  auto client = client_stream();
  std::optional<Result<void>> result;
  client->handshake([&](Result<void> r) { result = std::move(r); });
  ASSERT_EQ(::send(a_.get(), "HTTP/1.1 400 Bad\r\n\r\n", 20, MSG_NOSIGNAL), 20);
  ASSERT_TRUE(run_until([&] { return result.has_value(); }));
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code, "tls.handshake");
}

// The request comes in the same segment as the end of the handshake, and the hello was read before.
TEST_F(TlsTest, BytesBehindTheHandshakeAreNotLost) {
  trust();
  auto client = client_stream();
  std::optional<Result<void>> of_client, of_server;
  client->handshake([&](Result<void> r) { of_client = std::move(r); });
  std::string hello(4096, '\0');
  ssize_t size = 0;
  ASSERT_TRUE(run_until([&] { return (size = ::recv(a_.get(), hello.data(), hello.size(), 0)) > 0; }));
  hello.resize(static_cast<size_t>(size));
  auto server = server_stream(hello);
  body_ = "hi";
  server->handshake([&](Result<void> r) { of_server = std::move(r); });
  // TLS 1.3: the client is done one flight before the server and sends at once.
  ASSERT_TRUE(run_until([&] { return of_client.has_value(); }));
  client_ = std::make_unique<H1Client>(loop_, std::move(client), [](const std::string&) {}, [] {});
  auto opened = client_->open({"GET", "https", {"a.example", 443}, "/y", {}, "", false, {}}, *this);
  ASSERT_TRUE(opened);
  stream_ = std::move(*opened);
  ASSERT_TRUE(run_until([&] { return of_server.has_value(); }));
  server_ = std::make_unique<H1Server>(loop_, std::move(server), *this, H1Server::Options{},
                                       [](const std::string&) {});
  EXPECT_TRUE(run_until([&] { return ends_ == 2; }));
  EXPECT_EQ(got_, "hi");
}

// The other end of a server's stream: a client that has its answer, and its request behind it, there as soon
// as the server has written.
class QuickClient : public ByteStream {
 public:
  QuickClient(Loop& loop, SSL_CTX* context, std::string request)
      : loop_(loop), ssl_(SSL_new(context)), request_(std::move(request)) {
    SSL_set_connect_state(ssl_.get());
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    go_on();
  }
  Io read(char* buffer, size_t size) override {
    const size_t taken = in_.copy(buffer, size);
    in_.erase(0, taken);
    return {taken > 0 ? State::kOk : State::kWouldBlock, taken};
  }
  Io write(std::string_view bytes) override {
    BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    go_on();
    return {State::kOk, bytes.size()};
  }
  void want(std::function<void()> readable, std::function<void()>) override {
    soon_ = loop_.once(milliseconds(0), std::move(readable));
  }
  void shutdown_write() override {}
  void break_on_close() override {}
  void pause_reading(bool) override {}
  void wait_writable(bool) override {}

 private:
  void go_on() {
    if (SSL_do_handshake(ssl_.get()) == 1 && !request_.empty()) {
      SSL_write(ssl_.get(), request_.data(), static_cast<int>(request_.size()));
      request_.clear();
    }
    std::string out(BIO_ctrl_pending(SSL_get_wbio(ssl_.get())), '\0');
    if (!out.empty()) BIO_read(SSL_get_wbio(ssl_.get()), out.data(), static_cast<int>(out.size()));
    in_ += out;
  }

  Loop& loop_;
  SslPtr ssl_;
  std::string request_, in_;
  Loop::Handle soon_;
};

// All of the handshake and the request are there at the server's first go, which comes from below.
TEST_F(TlsTest, BytesBehindAHandshakeOfOneGoAreNotLost) {
  trust();
  SslPtr ssl(SSL_new(server_context_.get()));
  SSL_set_accept_state(ssl.get());
  auto server =
      std::make_unique<TlsStream>(loop_,
                                  std::make_unique<QuickClient>(loop_, client_context_.get(),
                                                                "GET /y HTTP/1.1\r\nHost: a.example\r\n\r\n"),
                                  std::move(ssl));
  auto* shaking = server.get();
  shaking->handshake([&](Result<void> result) {
    ASSERT_TRUE(result) << result.error().message;
    server_ = std::make_unique<H1Server>(loop_, std::move(server), *this, H1Server::Options{},
                                         [](const std::string&) {});
  });
  EXPECT_TRUE(run_until([&] { return answer_ != nullptr; }));
}

// An end that nobody signed is a break, also where the body ends with the connection.
TEST_F(TlsTest, ATruncatedAnswerIsNoAnswer) {
  trust();
  auto server = server_stream();
  auto client = client_stream();
  ASSERT_TRUE(shake(*server, *client));
  client_ = std::make_unique<H1Client>(loop_, std::move(client), [](const std::string&) {}, [] {});
  auto opened = client_->open({"GET", "https", {"a.example", 443}, "/", {}, "", false, {}}, *this);
  ASSERT_TRUE(opened);
  stream_ = std::move(*opened);
  server->write("HTTP/1.1 200 OK\r\n\r\nhalf of it");
  ASSERT_TRUE(run_until([&] { return got_ == "half of it"; }));
  server.reset();
  EXPECT_TRUE(run_until([&] { return !aborted_.empty(); }));
  EXPECT_EQ(ends_, 0);
}

}  // namespace
}  // namespace firestop::http
