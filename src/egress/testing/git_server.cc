#include "egress/testing/git_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>

#include "base/process.h"

namespace firestop::egress {
namespace {

// Reads from a socket until the text has what is wanted.
class Reader {
 public:
  explicit Reader(int socket) : socket_(socket) {}

  bool more() {
    char buffer[65536];
    const ssize_t got = ::read(socket_, buffer, sizeof buffer);
    if (got <= 0) return false;
    text_.append(buffer, static_cast<size_t>(got));
    return true;
  }
  // Everything before `end`, which is taken away, too.
  std::optional<std::string> until(std::string_view end) {
    size_t at;
    while ((at = text_.find(end)) == std::string::npos)
      if (!more()) return std::nullopt;
    std::string out = text_.substr(0, at);
    text_.erase(0, at + end.size());
    return out;
  }
  std::optional<std::string> bytes(size_t count) {
    while (text_.size() < count)
      if (!more()) return std::nullopt;
    std::string out = text_.substr(0, count);
    text_.erase(0, count);
    return out;
  }

 private:
  int socket_;
  std::string text_;
};

std::string compressed(std::string bytes) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(bytes.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

std::string response(int status, const http::Headers& headers, const std::string& body) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " x\r\n";
  for (const auto& [name, value] : headers) out += name + ": " + value + "\r\n";
  return out + "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

std::string refusal(const http::Denial& denial) {
  if (denial.answer) return response(denial.answer->status, denial.answer->headers, denial.answer->body);
  return response(denial.status, {{"Content-Type", "text/plain"}}, denial.message + "\n");
}

std::string value_of(const http::RequestHead& head, const char* name) {
  const auto* header = http::find_header(head.headers, name);
  return header ? header->value : "";
}

}  // namespace

GitTestServer::GitTestServer(std::string root, manifest::EgressRule::Git rule, Coding coding)
    : root_(std::move(root)), coding_(coding), rule_(std::move(rule)) {
  listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
  EXPECT_EQ(::listen(listener_.get(), 16), 0);
  EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

GitTestServer::~GitTestServer() {
  stop_ = true;
  thread_.join();
}

std::string GitTestServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/" + path;
}

void GitTestServer::set_rule(manifest::EgressRule::Git rule) {
  const std::lock_guard lock(mutex_);
  rule_ = std::move(rule);
}

std::vector<std::string> GitTestServer::passed() {
  const std::lock_guard lock(mutex_);
  return passed_;
}

std::vector<http::Denial> GitTestServer::denials() {
  const std::lock_guard lock(mutex_);
  return denials_;
}

void GitTestServer::serve() {
  while (!stop_) {
    pollfd waited{listener_.get(), POLLIN, 0};
    if (::poll(&waited, 1, 50) != 1) continue;
    const UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() >= 0) answer(socket.get());
  }
}

void GitTestServer::answer(int socket) {
  auto request = read(socket);
  if (!request) return;
  const std::string out = judged(std::move(*request));
  for (size_t at = 0; at < out.size();) {
    const ssize_t sent = ::send(socket, out.data() + at, out.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
  ::shutdown(socket, SHUT_WR);
}

std::optional<GitTestServer::Request> GitTestServer::read(int socket) {
  Reader reader(socket);
  auto text = reader.until("\r\n\r\n");
  if (!text) return std::nullopt;
  Request request;
  auto& head = request.head;
  const size_t end = text->find("\r\n");
  const std::string line = text->substr(0, end);
  head.method = line.substr(0, line.find(' '));
  head.target = line.substr(head.method.size() + 1, line.rfind(' ') - head.method.size() - 1);
  std::string length, coding;
  for (size_t at = end; at != std::string::npos && at + 2 < text->size();) {
    const size_t next = text->find("\r\n", at + 2);
    const std::string field = text->substr(at + 2, next == std::string::npos ? next : next - at - 2);
    const size_t colon = field.find(": ");
    if (colon != std::string::npos) {
      const http::Header header{field.substr(0, colon), field.substr(colon + 2)};
      if (http::same_name(header.name, "content-length"))
        length = header.value;
      else if (http::same_name(header.name, "transfer-encoding"))
        coding = header.value;
      else
        head.headers.push_back(header);
    }
    at = next;
  }
  if (http::find_header(head.headers, "expect")) (void)!::write(socket, "HTTP/1.1 100 Continue\r\n\r\n", 25);
  if (!length.empty()) {
    auto body = reader.bytes(std::stoul(length));
    if (!body) return std::nullopt;
    request.body = std::move(*body);
    head.body = {http::Body::Kind::kLength, request.body.size()};
  } else if (coding == "chunked") {
    head.body.kind = http::Body::Kind::kUnknown;
    while (true) {
      const auto size = reader.until("\r\n");
      if (!size) return std::nullopt;
      const size_t bytes = std::stoul(*size, nullptr, 16);
      auto chunk = reader.bytes(bytes + 2);
      if (!chunk) return std::nullopt;
      if (bytes == 0) break;
      request.body += chunk->substr(0, bytes);
    }
  }
  return request;
}

std::string GitTestServer::judged(Request request) {
  const std::lock_guard lock(mutex_);
  auto& [head, body] = request;
  if (coding_ == Coding::kGzip && head.method == "POST" &&
      !http::find_header(head.headers, "content-encoding")) {
    head.headers.push_back({"Content-Encoding", "gzip"});
    body = compressed(std::move(body));
  }
  auto verdict = judge_git_request(rule_, "egress[0]", head);
  std::string out;
  for (size_t at = 0; !verdict.denial && verdict.body && at < body.size(); at += 4096)
    verdict.denial = verdict.body->feed(std::string_view(body).substr(at, 4096), out);
  if (!verdict.denial && verdict.body) verdict.denial = verdict.body->finish(out);
  if (verdict.denial) {
    EXPECT_EQ(out, "");
    denials_.push_back(*verdict.denial);
    return refusal(*verdict.denial);
  }
  EXPECT_EQ(out, verdict.body ? body : "");
  passed_.push_back(head.method + " " + head.target + (verdict.body ? " " + verdict.body->detail() : ""));
  return backend(head, out);
}

std::string GitTestServer::backend(const http::RequestHead& head, const std::string& body) const {
  const size_t mark = head.target.find('?');
  Command command;
  command.argv = {"git", "http-backend"};
  command.env = std::vector<std::string>{
      "PATH=/usr/bin:/bin",
      "GIT_PROJECT_ROOT=" + root_,
      "GIT_HTTP_EXPORT_ALL=1",
      "REMOTE_USER=agent",
      "REMOTE_ADDR=127.0.0.1",
      "GIT_CONFIG_GLOBAL=/dev/null",
      "GIT_CONFIG_SYSTEM=/dev/null",
      "HOME=" + root_,
      "REQUEST_METHOD=" + head.method,
      "PATH_INFO=" + head.target.substr(0, mark),
      "QUERY_STRING=" + (mark == std::string::npos ? "" : head.target.substr(mark + 1)),
      "CONTENT_TYPE=" + value_of(head, "content-type"),
      "HTTP_CONTENT_ENCODING=" + value_of(head, "content-encoding"),
      "HTTP_GIT_PROTOCOL=" + value_of(head, "git-protocol")};
  const auto done = run(std::move(command), {.input = body});
  if (!done || !done->ok()) return response(500, {}, done ? done->err : done.error().message);
  int status = 200;
  http::Headers headers;
  size_t at = 0;
  while (true) {
    const size_t end = done->out.find("\r\n", at);
    if (end == std::string::npos || end == at) break;
    const std::string line = done->out.substr(at, end - at);
    const size_t colon = line.find(": ");
    if (line.starts_with("Status: "))
      status = std::stoi(line.substr(8));
    else
      headers.push_back({line.substr(0, colon), line.substr(colon + 2)});
    at = end + 2;
  }
  return response(status, headers, done->out.substr(std::min(at + 2, done->out.size())));
}

}  // namespace firestop::egress
