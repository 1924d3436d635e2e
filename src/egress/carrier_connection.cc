#include "egress/carrier_connection.h"

#include <sys/socket.h>

#include <algorithm>

#include "egress/codes.h"
#include "http/socket_stream.h"

namespace firestop::egress {
namespace {

constexpr std::string_view kH2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kReadSize = 4u << 10;
// Enough for a ClientHello or for the head of a CONNECT; more is left in the socket.
constexpr size_t kMostFirst = 64u << 10;

int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// A method's beginning, as far as the bytes go.
bool may_be_http(std::string_view bytes) {
  return codec::is_method(bytes.substr(0, bytes.find(' ')));
}

void reset(UniqueFd socket) {
  const linger now{1, 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

Carrier::Connection::Connection(Carrier& carrier, Guest guest, Way way)
    : carrier_(carrier),
      socket_(std::move(guest.socket)),
      way_(way),
      place_(std::move(guest.place)),
      started_us_(now_us()),
      deadline_(carrier.loop_, [this] {
        if (h2_) return end_if_idle();
        drop("failed", codes::kProtocol,
             shaking_ ? "the TLS handshake is not finished"
                      : "nothing came that says what this connection is");
      }) {
  origin_.asked = std::move(guest.to);
  origin_.source_port = guest.source_port;
}

Carrier::Connection::~Connection() = default;

void Carrier::Connection::start() {
  if (way_ == Way::kTransparent) {
    by_name_ = false;
    plan();
    if (gone_ || !socket_.valid()) return;
  }
  deadline_.set(carrier_.parts_.first_bytes);
  watch_ = carrier_.loop_.watch(socket_.get(), Loop::kReadable, [this](int) { read_some(); });
}

// Asked once it is known where to.
void Carrier::Connection::plan() {
  plan_ = carrier_.parts_.guard.connection(origin_.asked);
  if (plan_.use == ConnectionPlan::Use::kTcp) forward("tcp");
}

void Carrier::Connection::read_some() {
  char buffer[kReadSize];
  const ssize_t got = ::recv(socket_.get(), buffer, std::min(sizeof buffer, kMostFirst - first_.size()), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    // Nothing was said: nothing to tell but of a connection that was opened, and that a denial may be behind.
    if (first_.empty() && plan_.denial.code.empty()) return gone();
    return drop("failed", "", "the guest closed before it was clear what this connection is");
  }
  first_.append(buffer, static_cast<size_t>(got));
  look();
}

void Carrier::Connection::look() {
  if (by_name_) return look_at_proxy_request();
  look_at_first_bytes();
}

// The first request of a client that knows of the proxy.
void Carrier::Connection::look_at_proxy_request() {
  codec::Http1RequestReader reader;
  std::string_view rest = first_;
  const auto step = reader.next(rest);
  if (!step) return serve_as_proxy();  // answered with 400 there
  if (step->event == codec::Http1Reader::Event::kMore) {
    if (first_.size() >= kMostFirst) serve_as_proxy();
    return;
  }
  const codec::Http1Request request = reader.take_request();
  if (request.method != "CONNECT") return serve_as_proxy();
  first_ = std::string(rest);
  answer_connect(request);
}

void Carrier::Connection::serve_as_proxy() {
  stop_reading();
  serve(std::make_unique<http::SocketStream>(carrier_.loop_, std::move(socket_), std::move(first_)), "");
}

void Carrier::Connection::answer_connect(const codec::Http1Request& request) {
  origin_.asked = {request.authority.host, request.authority.port};
  by_name_ = false;
  plan_ = carrier_.parts_.guard.connection(origin_.asked);
  const http::RequestHead head{
      .method = request.method, .authority = origin_.asked, .headers = request.fields};
  if (const auto alarm = carrier_.parts_.guard.alarm_in(head)) return refuse_connect(*alarm);
  if (plan_.use == ConnectionPlan::Use::kDeny) return refuse_connect(plan_.denial);
  // A fresh connection takes so few bytes at once.
  static constexpr std::string_view kYes = "HTTP/1.1 200 Connection established\r\n\r\n";
  if (::send(socket_.get(), kYes.data(), kYes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(kYes.size())) {
    return drop("failed", "", "the client of the proxy is gone");
  }
  if (plan_.use == ConnectionPlan::Use::kTcp) return forward("tcp");
  if (!first_.empty()) look_at_first_bytes();
}

void Carrier::Connection::refuse_connect(const Denial& denial) {
  const Denial::Answer answer = answer_to(denial, {{}, origin_.asked.host, origin_.asked.port});
  std::string out;
  const codec::Http1Framing framing{codec::Http1Framing::Kind::kLength, answer.body.size()};
  if (codec::append_http1_response(out, answer.status, answer.headers, framing,
                                   codec::Http1Connection::kClose)) {
    out += answer.body;
    (void)::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL);
    ::shutdown(socket_.get(), SHUT_WR);
  }
  Crossing crossing = crossing_of("denied", denial.code, denial.message);
  crossing.rule = denial.rule;
  crossing.method = "CONNECT";
  crossing.status = answer.status;
  tell(crossing, denial);
  gone();
}

void Carrier::Connection::look_at_first_bytes() {
  const bool pass_through = plan_.use == ConnectionPlan::Use::kPassThrough;
  if (codec::may_be_tls(first_)) {
    const auto hello = codec::parse_client_hello(first_);
    if (!hello) return drop("denied", codes::kBadRequest, hello.error().message);
    if (const auto& whole = *hello; whole.has_value()) on_hello(*whole);
    return;
  }
  if (pass_through) return drop("denied", codes::kProtocol, "no TLS where a rule allows only that");
  if (kH2Preface.substr(0, first_.size()) == std::string_view(first_).substr(0, kH2Preface.size())) {
    if (first_.size() < kH2Preface.size()) return;
    plain_h2_ = true;
  } else if (!may_be_http(first_)) {
    return drop("denied", codes::kProtocol, "neither TLS nor HTTP");
  } else if (first_.find(' ') == std::string::npos) {
    return;
  }
  stop_reading();
  serve(std::make_unique<http::SocketStream>(carrier_.loop_, std::move(socket_), std::move(first_)),
        plain_h2_ ? "h2" : "");
}

void Carrier::Connection::on_hello(const codec::ClientHello& hello) {
  if (auto alarm = carrier_.parts_.guard.alarm_in_server_name(hello.server_name)) {
    plan_.use = ConnectionPlan::Use::kDeny;
    plan_.denial = std::move(*alarm);
    return drop("denied", plan_.denial.code, plan_.denial.message);
  }
  if (plan_.use != ConnectionPlan::Use::kPassThrough) return open_tls(hello);
  if (const auto differs = server_name_differs(hello, plan_.route, origin_.asked)) {
    return drop("denied", differs->code, differs->message);
  }
  forward("tls");
}

// Also of a connection that is denied: so that the denial can be read.
void Carrier::Connection::open_tls(const codec::ClientHello& hello) {
  stop_reading();
  origin_.tls = true;
  origin_.server_name = hello.server_name;
  const std::string& host = hello.server_name.empty() ? origin_.asked.host : hello.server_name;
  auto ssl = carrier_.parts_.authority.accept_tls(host, {"h2", "http/1.1"});
  if (!ssl) {
    const bool denied = plan_.use == ConnectionPlan::Use::kDeny;
    return drop("denied", denied ? plan_.denial.code : codes::kHostMismatch,
                denied ? plan_.denial.message : ssl.error().message);
  }
  shaking_ = std::make_unique<http::TlsStream>(
      carrier_.loop_,
      std::make_unique<http::SocketStream>(carrier_.loop_, std::move(socket_), std::move(first_)),
      std::move(*ssl));
  deadline_.set(Carrier::kHandshake);
  shaking_->handshake([this](Result<void> result) {
    if (gone_) return;
    deadline_.clear();
    if (!result)
      return drop("failed", codes::kProtocol,
                  "the guest does not accept the certificate of this sandbox, or ended the handshake: " +
                      result.error().message);
    const std::string protocol = shaking_->protocol();
    serve(std::move(shaking_), protocol);
  });
}

void Carrier::Connection::serve(std::unique_ptr<http::ByteStream> bytes, const std::string& protocol) {
  deadline_.clear();
  const auto closed = [this](const std::string&) { gone(); };
  if (protocol == "h2") {
    h2_ = std::make_unique<http::H2Server>(carrier_.loop_, std::move(bytes), *this, closed);
    deadline_.set(carrier_.parts_.idle);
    return;
  }
  http::H1Server::Options options;
  options.scheme = origin_.tls ? "https" : "http";
  options.head_time = carrier_.parts_.head_time;
  options.idle = carrier_.parts_.idle;
  options.refusal_code = codes::kBadRequest;
  options.refused = [this](const Error& why, int status) {
    if (why.code == "http.truncated") return;
    Crossing crossing = crossing_of("denied", codes::kBadRequest, why.message);
    crossing.kind = Crossing::Kind::kRequest;
    crossing.status = status;
    carrier_.parts_.record(crossing);
  };
  h1_ = std::make_unique<http::H1Server>(carrier_.loop_, std::move(bytes), *this, std::move(options), closed);
}

void Carrier::Connection::on_request(http::RequestHead head, std::unique_ptr<http::ServerStream> stream) {
  asked_lately_ = true;
  Origin origin = origin_;
  if (by_name_) origin.asked = head.authority;
  const auto wire = plain_h2_ ? OriginPool::Wire::kH2c : OriginPool::Wire::kAny;
  const bool denied = !by_name_ && plan_.use == ConnectionPlan::Use::kDeny;
  carrier_.relay(origin, wire, std::move(head), std::move(stream), denied ? &plan_.denial : nullptr);
}

// Of HTTP/2; HTTP/1.1 sees to it itself.
void Carrier::Connection::end_if_idle() {
  if (std::exchange(asked_lately_, false) || h2_->streams() > 0) return deadline_.set(carrier_.parts_.idle);
  h2_->shut_down();
}

void Carrier::Connection::forward(const char* scheme) {
  stop_reading();
  carrier_.parts_.raw.start(
      {std::move(socket_), std::move(first_), origin_.asked, scheme, origin_.source_port, std::move(place_)},
      plan_.route);
  gone();
}

void Carrier::Connection::stop_reading() {
  watch_.reset();
  deadline_.clear();
}

Crossing Carrier::Connection::crossing_of(const char* verdict, const std::string& code,
                                          const std::string& detail) const {
  Crossing out;
  out.kind = Crossing::Kind::kConnection;
  out.verdict = verdict;
  out.code = code;
  out.scheme = origin_.tls ? "https" : by_name_ ? "http" : "tcp";
  out.host = origin_.asked.host;
  out.port = origin_.asked.port;
  out.detail = detail.substr(0, kMostDetail);
  out.started_us = started_us_;
  out.took_us = now_us() - started_us_;
  out.source_port = origin_.source_port;
  return out;
}

// An alarm beside what was denied for it.
void Carrier::Connection::tell(const Crossing& crossing, const Denial& denial) {
  if (denial.alarm) {
    Crossing alarm = crossing;
    alarm.kind = Crossing::Kind::kAlarm;
    alarm.credential = denial.credential;
    carrier_.parts_.record(alarm);
  }
  carrier_.parts_.record(crossing);
}

// Resets it: what it was cannot be answered.
void Carrier::Connection::drop(const char* verdict, const std::string& code, const std::string& detail) {
  if (gone_) return;
  // What the plan said comes first: the guest may be wrong in two ways.
  const bool denied = plan_.use == ConnectionPlan::Use::kDeny && !plan_.denial.code.empty();
  Crossing crossing = denied ? crossing_of("denied", plan_.denial.code, plan_.denial.message)
                             : crossing_of(verdict, code, detail);
  crossing.rule = denied ? plan_.denial.rule : plan_.route.rule;
  tell(crossing, denied ? plan_.denial : Denial{});
  stop_reading();
  if (shaking_) shaking_->break_on_close();
  if (socket_.valid()) reset(std::move(socket_));
  gone();
}

void Carrier::Connection::gone() {
  if (std::exchange(gone_, true)) return;
  stop_reading();
  if (!carrier_.ending_) carrier_.forget(this);
}

}  // namespace firestop::egress
