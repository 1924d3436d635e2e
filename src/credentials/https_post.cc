#include "credentials/https_post.h"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "codec/base64.h"
#include "codec/http1.h"
#include "credentials/secret.h"
#include "http/message.h"

namespace firestop::credentials {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Unexpected unavailable(const std::string& why) {
  return fail("credential.unavailable", why);
}

struct Url {
  bool tls = true;
  http::Authority authority;
  std::string target;
};

std::optional<Url> parse_url(std::string_view url) {
  Url out;
  if (url.starts_with("https://")) {
    url.remove_prefix(8);
  } else if (url.starts_with("http://")) {
    url.remove_prefix(7);
    out.tls = false;
  } else {
    return {};
  }
  const size_t slash = std::min(url.find('/'), url.size());
  const auto authority = http::parse_authority(url.substr(0, slash), out.tls ? 443 : 80);
  if (!authority) return {};
  out.authority = *authority;
  out.target = slash < url.size() ? std::string(url.substr(slash)) : "/";
  return out;
}

// HTTPS_PROXY as "http://[USER:PASSWORD@]HOST:PORT", unless NO_PROXY has the host or its domain.
struct Proxy {
  http::Authority authority;
  std::string basic;
};
std::optional<Proxy> proxy_for(const std::string& host) {
  const auto variable = [](const char* upper, const char* lower) -> std::string_view {
    const char* value = ::getenv(lower);  // NOLINT(concurrency-mt-unsafe): one thread
    if (!value) value = ::getenv(upper);  // NOLINT(concurrency-mt-unsafe)
    return value ? std::string_view(value) : "";
  };
  std::string_view none = variable("NO_PROXY", "no_proxy");
  while (!none.empty()) {
    std::string_view one = none.substr(0, none.find(','));
    none.remove_prefix(std::min(none.size(), one.size() + 1));
    while (one.starts_with(' ') || one.starts_with('.')) one.remove_prefix(1);
    if (one == "*" || (!one.empty() && (host == one || host.ends_with("." + std::string(one))))) return {};
  }
  std::string_view url = variable("HTTPS_PROXY", "https_proxy");
  if (url.starts_with("http://")) url.remove_prefix(7);
  url = url.substr(0, url.find('/'));
  Proxy out;
  if (const size_t at = url.rfind('@'); at != std::string_view::npos) {
    out.basic = codec::encode_base64(url.substr(0, at));
    url.remove_prefix(at + 1);
  }
  const auto authority = http::parse_authority(url, 8080);
  if (!authority) return {};
  out.authority = *authority;
  return out;
}

class Connection {
 public:
  explicit Connection(Clock::time_point deadline) : deadline_(deadline) {}
  ~Connection() {
    if (ssl_) ::SSL_free(ssl_);
    if (context_) ::SSL_CTX_free(context_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<void> connect(const http::Authority& to) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0)
      return unavailable("the name " + to.host + " cannot be resolved");
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
    for (const auto* one = found; one != nullptr; one = one->ai_next) {
      socket_.reset(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!socket_.valid()) continue;
      if (::connect(socket_.get(), one->ai_addr, one->ai_addrlen) == 0) return {};
      if (errno == EINPROGRESS && wait(POLLOUT)) {
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == 0) return {};
      }
    }
    return unavailable("no connection to " + to.host);
  }

  Result<void> start_tls(const std::string& host, const std::string& ca_file) {
    context_ = ::SSL_CTX_new(::TLS_client_method());
    if (!context_) return unavailable("TLS cannot start");
    ::SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
    ::SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    ::SSL_CTX_set_default_verify_paths(context_);
    if (!ca_file.empty() && ::SSL_CTX_load_verify_locations(context_, ca_file.c_str(), nullptr) != 1)
      return unavailable("the certificates in " + ca_file + " cannot be read");
    ssl_ = ::SSL_new(context_);
    if (!ssl_ || ::SSL_set1_host(ssl_, host.c_str()) != 1 ||
        ::SSL_set_tlsext_host_name(ssl_, host.c_str()) != 1 || ::SSL_set_fd(ssl_, socket_.get()) != 1)
      return unavailable("TLS cannot start");
    while (true) {
      const int done = ::SSL_connect(ssl_);
      if (done == 1) return {};
      if (!wait_tls(done))
        return unavailable("TLS with " + host + " failed, or its certificate is not trusted");
    }
  }

  Result<void> write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto size = static_cast<int>(std::min<size_t>(bytes.size(), 16384));
      const auto sent = ssl_ ? ::SSL_write(ssl_, bytes.data(), size)
                             : static_cast<int>(::send(socket_.get(), bytes.data(), static_cast<size_t>(size),
                                                       MSG_NOSIGNAL));
      if (sent > 0)
        bytes.remove_prefix(static_cast<size_t>(sent));
      else if (!(ssl_ ? wait_tls(sent) : errno == EAGAIN && wait(POLLOUT)))
        return unavailable("the connection broke");
    }
    return {};
  }

  // Some bytes; none at the end.
  Result<std::string> read() {
    std::string out(16384, '\0');
    while (true) {
      const auto got = ssl_ ? ::SSL_read(ssl_, out.data(), static_cast<int>(out.size()))
                            : static_cast<int>(::recv(socket_.get(), out.data(), out.size(), 0));
      if (got > 0) {
        out.resize(static_cast<size_t>(got));
        return out;
      }
      if (ssl_ ? ::SSL_get_error(ssl_, got) == SSL_ERROR_ZERO_RETURN : got == 0) return std::string();
      if (!(ssl_ ? wait_tls(got) : errno == EAGAIN && wait(POLLIN)))
        return unavailable("the connection broke");
    }
  }

 private:
  bool wait(short events) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()).count();
    pollfd one{socket_.get(), events, 0};
    return left > 0 && ::poll(&one, 1, static_cast<int>(left)) > 0;
  }
  bool wait_tls(int result) {
    const int error = ::SSL_get_error(ssl_, result);
    ::ERR_clear_error();
    return error == SSL_ERROR_WANT_READ ? wait(POLLIN) : error == SSL_ERROR_WANT_WRITE && wait(POLLOUT);
  }

  Clock::time_point deadline_;
  UniqueFd socket_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
};

// Seconds; a date is for those who have a clock in common.
std::optional<std::chrono::seconds> retry_after(const codec::HttpFields& fields) {
  for (const auto& field : fields) {
    if (!http::same_name(field.name, "retry-after")) continue;
    int64_t seconds = 0;
    const auto [end, error] =
        std::from_chars(field.value.data(), field.value.data() + field.value.size(), seconds);
    if (error == std::errc() && end == field.value.data() + field.value.size() && seconds >= 0 &&
        seconds < 86400)
      return std::chrono::seconds(seconds);
  }
  return {};
}

Result<PostAnswer> read_answer(Connection& connection, std::string_view method) {
  codec::Http1ResponseReader reader;
  reader.expect(method, false);
  PostAnswer out;
  std::string bytes;
  std::string_view left;
  while (true) {
    TRY_ASSIGN(const auto step, reader.next(left));
    using Event = codec::Http1Reader::Event;
    if (step.event == Event::kHead) {
      const auto head = reader.take_response();
      out.status = head.status;
      out.retry_after = retry_after(head.fields);
      if (out.status >= 200 && method == "CONNECT") return out;
      if (out.status < 200) reader.expect(method, false);
    } else if (step.event == Event::kData) {
      if (out.body.size() + step.data.size() > kMostAnswer) return unavailable("the answer is too long");
      out.body += step.data;
    } else if (step.event == Event::kEnd) {
      if (out.status >= 200) return out;
    } else {
      wipe(bytes);
      TRY_ASSIGN(bytes, connection.read());
      left = bytes;
      if (!bytes.empty()) continue;
      TRY_ASSIGN(const auto last, reader.end_of_input());
      if (last.event == Event::kEnd && out.status >= 200) return out;
      return unavailable("the answer ends too early");
    }
  }
}

Result<void> open(Connection& connection, const Url& url, const std::string& ca_file) {
  const auto proxy = url.tls ? proxy_for(url.authority.host) : std::nullopt;
  TRY(connection.connect(proxy ? proxy->authority : url.authority));
  if (proxy) {
    const std::string to = http::to_string(url.authority, 0);
    const Wiped head("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n" +
                     (proxy->basic.empty() ? "" : "Proxy-Authorization: Basic " + proxy->basic + "\r\n") +
                     "\r\n");
    TRY(connection.write(head.text));
    TRY_ASSIGN(const auto answer, read_answer(connection, "CONNECT"));
    if (answer.status / 100 != 2) return unavailable("the host's proxy refused the connection");
  }
  if (url.tls) return connection.start_tls(url.authority.host, ca_file);
  return {};
}

}  // namespace

Result<PostAnswer> http_post(const Post& post, milliseconds limit) {
  const auto failed = [](std::string what) { return fail("post.failed", std::move(what)); };
  const auto url = parse_url(post.url);
  if (!url) return failed("the address is malformed");
  std::string headers;
  for (const auto& [name, value] : post.headers) {
    if (!codec::is_token(name) || value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      return failed("a header that is none was to be sent");
    headers += name + ": " + value + "\r\n";
  }
  Connection connection(Clock::now() + limit);
  const auto exchange = [&]() -> Result<PostAnswer> {
    TRY(open(connection, *url, post.ca_file));
    Wiped request("POST " + url->target +
                  " HTTP/1.1\r\nHost: " + http::to_string(url->authority, url->tls ? 443 : 80) +
                  "\r\nAccept: application/json\r\nContent-Type: " + post.content_type +
                  "\r\nContent-Length: " + std::to_string(post.body.size()) + "\r\n" + headers +
                  "Connection: close\r\n\r\n");
    wipe(headers);
    request.text.reserve(request.text.size() + post.body.size());
    request.text += post.body;
    TRY(connection.write(request.text));
    return read_answer(connection, "POST");
  };
  auto answer = exchange();
  if (answer) return answer;
  return failed(answer.error().code == "credential.unavailable" ? answer.error().message
                                                                : "the answer is malformed");
}

Result<PostAnswer> https_post(const std::string& url, const std::string& ca_file, std::string_view form,
                              milliseconds limit) {
  auto answer = http_post({.url = url,
                           .ca_file = ca_file,
                           .content_type = "application/x-www-form-urlencoded",
                           .headers = {},
                           .body = form},
                          limit);
  if (!answer) return unavailable("the token server: " + answer.error().message);
  return answer;
}

void append_form_field(std::string& form, std::string_view name, std::string_view value) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (!form.empty()) form += '&';
  form += name;
  form += '=';
  for (const char c : value) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      form += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    form += '%';
    form += kDigits[byte >> 4];
    form += kDigits[byte & 15];
  }
}

}  // namespace firestop::credentials
