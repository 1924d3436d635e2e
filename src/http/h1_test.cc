#include <gtest/gtest.h>
#include <sys/socket.h>

#include <deque>

#include "http/h1_client.h"
#include "http/h1_server.h"
#include "http/socket_stream.h"

namespace firestop::http {
namespace {

using std::chrono::milliseconds;

struct Listener : StreamReceiver {
  void on_response(ResponseHead head) override { responses.push_back(std::move(head)); }
  void on_data(std::string_view bytes) override {
    data.append(bytes);
    if (!holding && stream) stream->consumed(bytes.size());
  }
  void on_end(Headers given) override {
    ended = true;
    trailers = std::move(given);
    if (at_end) at_end();
  }
  void on_abort(const std::string& why) override { aborted = why; }
  void on_writable() override {
    if (at_writable) at_writable();
  }
  std::deque<ResponseHead> responses;
  std::string data, aborted;
  Headers trailers;
  Stream* stream = nullptr;
  bool holding = false, ended = false;
  std::function<void()> at_end, at_writable;
};

struct Taken {
  RequestHead head;
  std::unique_ptr<ServerStream> stream;
  Listener listener;
};

// Both sides of a socket pair may be a connection of ours or bare bytes.
class H1Test : public ::testing::Test, public RequestHandler {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    server_end_ = UniqueFd(pair[0]);
    client_end_ = UniqueFd(pair[1]);
    options_.refused = [this](const Error& why, int status) {
      refused_ = why.code + " " + std::to_string(status);
    };
  }
  void TearDown() override {
    stream_.reset();
    taken_.clear();
    client_.reset();
    server_.reset();
  }
  void serve() {
    server_ = std::make_unique<H1Server>(loop_, std::make_unique<SocketStream>(loop_, std::move(server_end_)),
                                         *this, options_, [this](const std::string& why) {
                                           server_closed_ = why.empty() ? "in order" : why;
                                           server_.reset();
                                         });
  }
  void connect() {
    client_ = std::make_unique<H1Client>(
        loop_, std::make_unique<SocketStream>(loop_, std::move(client_end_)),
        [this](const std::string& why) { client_closed_ = why.empty() ? "in order" : why; },
        [this] { ++idle_; });
  }
  void on_request(RequestHead head, std::unique_ptr<ServerStream> stream) override {
    auto taken = std::make_unique<Taken>();
    taken->head = std::move(head);
    taken->stream = std::move(stream);
    taken->listener.stream = taken->stream.get();
    taken->stream->set_receiver(&taken->listener);
    taken_.push_back(std::move(taken));
    if (at_request_) at_request_(*taken_.back());
  }
  void open(const RequestHead& head) {
    auto opened = client_->open(head, listener_);
    ASSERT_TRUE(opened) << opened.error().message;
    stream_ = std::move(*opened);
    listener_.stream = stream_.get();
  }
  // Turns the loop until `done`, at most `most`.
  bool run_until(const std::function<bool()>& done, milliseconds most = milliseconds(5000)) {
    bool late = false;
    const auto tick = loop_.every(milliseconds(1), [&] {
      if (done()) loop_.stop();
    });
    const auto limit = loop_.once(most, [&] {
      late = true;
      loop_.stop();
    });
    if (!done()) loop_.run();
    return !late;
  }
  void say(int fd, std::string_view bytes) {
    ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // What arrives at `fd` until `end` is at its end, or the other side has closed.
  std::string hear(int fd, std::string_view end) {
    std::string got;
    EXPECT_TRUE(run_until([&] {
      char buffer[4096];
      ssize_t n = 0;
      while ((n = ::recv(fd, buffer, sizeof buffer, 0)) > 0) got.append(buffer, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EAGAIN)) {
        got += "<closed>";
        return true;
      }
      return !end.empty() && got.ends_with(end);
    })) << got;
    return got;
  }
  static RequestHead request(Body body = {}) {
    return {body.kind == Body::Kind::kNone ? "GET" : "POST",
            "https",
            {"api.example.com", 443},
            "/v1?q=%2F",
            {{"X", "y"}},
            "",
            false,
            body};
  }
  // Answers with the method, the target and the body that came.
  static void echo(Taken& taken) {
    taken.listener.at_end = [&taken] {
      const std::string text = taken.head.method + " " + taken.head.target + " " + taken.listener.data;
      taken.stream->send_response({200, {}, {Body::Kind::kLength, text.size()}});
      taken.stream->send_data(text);
      taken.stream->send_end({});
    };
  }

  Loop loop_;
  UniqueFd server_end_, client_end_;
  H1Server::Options options_;
  std::unique_ptr<H1Server> server_;
  std::unique_ptr<H1Client> client_;
  std::vector<std::unique_ptr<Taken>> taken_;
  std::function<void(Taken&)> at_request_;
  Listener listener_;
  std::unique_ptr<ClientStream> stream_;
  std::string server_closed_, client_closed_, refused_;
  int idle_ = 0;
};

TEST_F(H1Test, BothSidesKeepTheConnection) {
  serve();
  connect();
  at_request_ = echo;
  for (int i = 1; i <= 3; ++i) {
    listener_ = {};
    open(request({Body::Kind::kUnknown, 0}));
    stream_->send_data("ab");
    stream_->send_data("c");
    stream_->send_end({});
    ASSERT_TRUE(run_until([&] { return idle_ == i; }));
    EXPECT_EQ(listener_.data, "POST /v1?q=%2F abc");
    EXPECT_TRUE(listener_.ended);
  }
  const RequestHead& head = taken_[0]->head;
  EXPECT_EQ(head.authority, (Authority{"api.example.com", 443}));
  EXPECT_EQ(head.scheme, "https");
  EXPECT_EQ(head.headers.size(), 1u);
  EXPECT_EQ(head.body.kind, Body::Kind::kUnknown);
  client_.reset();
  EXPECT_TRUE(run_until([&] { return server_closed_ == "in order"; }));
}

TEST_F(H1Test, TrailersAndInterimHeads) {
  serve();
  connect();
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({103, {{"Link", "</a>"}}, {}});
    taken.listener.at_end = [&taken] {
      taken.stream->send_response(
          {200, {{"Set-Cookie", "a"}, {"Set-Cookie", "b"}}, {Body::Kind::kUnknown, 0}});
      taken.stream->send_data("hello");
      taken.stream->send_end({{"Sum", "5"}});
    };
  };
  open(request());
  ASSERT_TRUE(run_until([&] { return listener_.ended; }));
  ASSERT_EQ(listener_.responses.size(), 2u);
  EXPECT_EQ(listener_.responses[0].status, 103);
  EXPECT_EQ(listener_.responses[1].headers.size(), 2u);
  EXPECT_EQ(listener_.data, "hello");
  EXPECT_EQ(listener_.trailers.at(0).value, "5");
}

TEST_F(H1Test, PipelinedRequestsAreAnsweredInOrder) {
  serve();
  at_request_ = echo;
  say(client_end_.get(),
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
      "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /4 HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string got = hear(client_end_.get(), "");
  EXPECT_EQ(got,
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nGET /1 HTTP/1.1 200 OK\r\nContent-Length: "
            "10\r\n\r\nPOST /2 hi"
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nGET /3 <closed>");
  EXPECT_EQ(taken_.size(), 3u);
}

// The first answer's time is the second request's time to wait, in one piece of memory.
TEST_F(H1Test, APipelineIsNotReadAhead) {
  serve();
  say(client_end_.get(), "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return taken_.size() == 1; }));
  EXPECT_FALSE(run_until([&] { return taken_.size() == 2; }, milliseconds(50)));
  const std::string more(4096, 'x');
  size_t sent = 0;
  run_until([&] {
    const ssize_t n = ::send(client_end_.get(), more.data(), more.size(), MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<size_t>(n);
    return n < 0;
  });
  EXPECT_LT(sent, size_t{1} << 20) << "the socket's own buffer is all that takes it";
}

TEST_F(H1Test, AnswersWithoutBodies) {
  serve();
  const auto answer = [&](const char* method, ResponseHead head, const char* body = "") {
    at_request_ = [=](Taken& taken) {
      taken.stream->send_response(head);
      taken.stream->send_data(body);
      taken.stream->send_end({});
    };
    say(client_end_.get(), std::string(method) + " / HTTP/1.1\r\nHost: a\r\n\r\n");
    return hear(client_end_.get(), std::string("\r\n\r\n") + body);
  };
  EXPECT_EQ(answer("HEAD", {200, {}, {Body::Kind::kLength, 5}}),
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(answer("HEAD", {200, {}, {Body::Kind::kUnknown, 0}}),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(answer("HEAD", {200, {}, {}}), "HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(answer("GET", {204, {}, {}}), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(answer("GET", {304, {}, {Body::Kind::kLength, 5}}),
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(answer("GET", {200, {}, {}}), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(answer("GET", {200, {}, {Body::Kind::kLength, 2}}, "hi"),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
}

TEST_F(H1Test, AnOldClientGetsItsBodyUntilTheEnd) {
  serve();
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({103, {}, {}});
    taken.stream->send_response({200, {}, {Body::Kind::kUnknown, 0}});
    taken.stream->send_data("hi");
    taken.stream->send_end({});
  };
  say(client_end_.get(), "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(hear(client_end_.get(), ""), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi<closed>");
}

TEST_F(H1Test, WhatIsNoRequestIsAnsweredAndReachesNobody) {
  options_.refusal_code = "egress.bad_request";
  serve();
  say(client_end_.get(), "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  const std::string got = hear(client_end_.get(), "");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 400 Bad Request\r\n")) << got;
  EXPECT_NE(got.find("X-Firestop-Code: egress.bad_request\r\n"), std::string::npos);
  EXPECT_NE(got.find("more than one Host"), std::string::npos);
  EXPECT_TRUE(got.ends_with("<closed>"));
  EXPECT_TRUE(taken_.empty());
  EXPECT_EQ(refused_, "http.malformed 400");
}

TEST_F(H1Test, ABadChunkIsAnsweredWith400AndAborts) {
  serve();
  say(client_end_.get(), "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n5 \r\n");
  const std::string got = hear(client_end_.get(), "");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 400 ")) << got;
  ASSERT_EQ(taken_.size(), 1u);
  EXPECT_FALSE(taken_[0]->listener.ended);
  EXPECT_NE(taken_[0]->listener.aborted, "");
}

TEST_F(H1Test, ExpectContinue) {
  serve();
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({100, {}, {}});
    echo(taken);
  };
  say(client_end_.get(), "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(hear(client_end_.get(), "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(taken_[0]->head.expects_continue);
  say(client_end_.get(), "hi");
  EXPECT_EQ(hear(client_end_.get(), "hi"), "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nPUT / hi");
}

TEST_F(H1Test, AnAnswerInPlaceOf100EndsTheConnection) {
  serve();
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({403, {}, {}});
    taken.stream->send_end({});
    taken.stream.reset();
  };
  say(client_end_.get(), "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(hear(client_end_.get(), ""),
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n<closed>");
}

// Bytes right behind the head, both ways, belong to the tunnel; each half ends alone.
TEST_F(H1Test, AWebSocketIsATunnel) {
  serve();
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({101, {{"Sec-WebSocket-Accept", "x"}}, {}});
    taken.stream->send_data("\x81\x02hi");
    taken.listener.at_end = [&taken] {
      taken.stream->send_data("bye");
      taken.stream->send_end({});
    };
  };
  say(client_end_.get(),
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x01!");
  const std::string got = hear(client_end_.get(), "hi");
  EXPECT_EQ(got,
            "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nConnection: Upgrade\r\nUpgrade: "
            "websocket\r\n\r\n\x81\x02hi");
  ASSERT_EQ(taken_.size(), 1u);
  EXPECT_EQ(taken_[0]->head.upgrade, "websocket");
  EXPECT_TRUE(run_until([&] { return taken_[0]->listener.data == "\x81\x01!"; }));
  ::shutdown(client_end_.get(), SHUT_WR);
  EXPECT_EQ(hear(client_end_.get(), ""), "bye<closed>");
  EXPECT_TRUE(run_until([&] { return server_closed_ == "in order"; }));
}

TEST_F(H1Test, TheClientsTunnel) {
  connect();
  RequestHead head = request();
  head.upgrade = "websocket";
  open(head);
  EXPECT_EQ(hear(server_end_.get(), "\r\n\r\n"),
            "GET /v1?q=%2F HTTP/1.1\r\nHost: api.example.com\r\nX: y\r\nConnection: Upgrade\r\nUpgrade: "
            "websocket\r\n\r\n");
  say(server_end_.get(), "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x01!");
  ASSERT_TRUE(run_until([&] { return listener_.data == "\x81\x01!"; }));
  EXPECT_FALSE(listener_.ended);
  stream_->send_data("ping");
  EXPECT_EQ(hear(server_end_.get(), "ping"), "ping");
  stream_->send_end({});
  EXPECT_EQ(hear(server_end_.get(), ""), "<closed>");
  server_end_.reset();
  EXPECT_TRUE(run_until([&] { return listener_.ended; }));
}

TEST_F(H1Test, AHalfClosedClientGetsItsAnswer) {
  serve();
  at_request_ = echo;
  say(client_end_.get(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ::shutdown(client_end_.get(), SHUT_WR);
  EXPECT_EQ(hear(client_end_.get(), ""), "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nGET / <closed>");
}

TEST_F(H1Test, ASlowHeadAndAnIdleConnectionEnd) {
  options_.head_time = milliseconds(50);
  serve();
  say(client_end_.get(), "GET / HTTP/1.1\r\nHo");
  EXPECT_EQ(hear(client_end_.get(), ""), "<closed>");
  EXPECT_EQ(server_closed_, "the other side is too slow");
}

TEST_F(H1Test, AnIdleConnectionEnds) {
  options_.idle = milliseconds(50);
  serve();
  at_request_ = echo;
  say(client_end_.get(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(hear(client_end_.get(), "").ends_with("GET / <closed>"));
  EXPECT_TRUE(run_until([&] { return server_closed_ == "in order"; }));
}

TEST_F(H1Test, WhoDoesNotReadHoldsUpTheSender) {
  serve();
  connect();
  open(request({Body::Kind::kUnknown, 0}));
  ASSERT_TRUE(run_until([&] { return taken_.size() == 1; }));
  Taken& taken = *taken_[0];
  taken.listener.holding = true;
  size_t sent = 0;
  const std::string block(64 << 10, 'x');
  listener_.at_writable = [&] {
    while (stream_->buffered() <= kHighWater && sent < (64u << 20)) {
      stream_->send_data(block);
      sent += block.size();
    }
  };
  listener_.at_writable();
  EXPECT_FALSE(run_until([&] { return sent >= (64u << 20); }, milliseconds(200)));
  EXPECT_LE(taken.listener.data.size(), kHighWater + (128u << 10));
  EXPECT_LE(sent, 2 * kHighWater + (1u << 20));
  const size_t before = sent;
  taken.listener.holding = false;
  taken.stream->consumed(taken.listener.data.size());
  EXPECT_TRUE(run_until([&] { return sent > before + (4u << 20); }));
}

TEST_F(H1Test, ABodyThatIsNotWhatWasSaidIsABreakNotAnEnd) {
  serve();
  connect();
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({200, {}, {Body::Kind::kLength, 5}});
    taken.stream->send_data("hi");
    taken.stream->send_end({});
  };
  open(request());
  ASSERT_TRUE(run_until([&] { return !listener_.aborted.empty(); }));
  EXPECT_FALSE(listener_.ended);
}

TEST_F(H1Test, TheOriginIsNotBelieved) {
  for (const char* answer : {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
                             "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", "SSH-2.0-OpenSSH\r\n"}) {
    SetUp();
    connect();
    listener_ = {};
    open(request());
    hear(server_end_.get(), "\r\n\r\n");
    say(server_end_.get(), answer);
    server_end_.reset();
    EXPECT_TRUE(run_until([&] { return !listener_.aborted.empty(); })) << answer;
    EXPECT_FALSE(listener_.ended);
    EXPECT_FALSE(client_->can_open());
    TearDown();
  }
}

// Nothing that comes while no request is open can become the answer to the next one.
TEST_F(H1Test, AnAnswerAheadOfItsRequestEndsTheConnection) {
  connect();
  say(server_end_.get(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(run_until([&] { return !client_closed_.empty(); }));
}

TEST_F(H1Test, InterimAnswersWithoutEnd) {
  connect();
  open(request());
  std::string flood;
  for (int i = 0; i <= H1Client::kMostInterim; ++i) flood += "HTTP/1.1 102 P\r\n\r\n";
  say(server_end_.get(), flood);
  EXPECT_TRUE(run_until([&] { return !listener_.aborted.empty(); }));
}

TEST_F(H1Test, AHeadThatCannotBeSaidIsNotSent) {
  connect();
  RequestHead head = request();
  head.headers.push_back({"A", "b\r\nC: d"});
  const auto opened = client_->open(head, listener_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, "http.unwritable");
  EXPECT_TRUE(client_->can_open());
}

TEST_F(H1Test, ShutDownEndsAfterTheExchange) {
  serve();
  say(client_end_.get(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return taken_.size() == 1; }));
  server_->shut_down();
  taken_[0]->stream->send_response({200, {}, {}});
  EXPECT_EQ(hear(client_end_.get(), ""),
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n<closed>");
}

TEST_F(H1Test, WhoStallsIsLetGo) {
  serve();
  server_->set_stall(milliseconds(60));
  say(client_end_.get(), "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
  ASSERT_TRUE(run_until([&] { return taken_.size() == 1; }));
  EXPECT_TRUE(run_until([&] { return server_closed_ == "the other side is too slow"; }));
}

TEST_F(H1Test, WhoDoesNotReadIsLetGo) {
  serve();
  server_->set_stall(milliseconds(60));
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({200, {}, {Body::Kind::kLength, 8u << 20}});
    taken.stream->send_data(std::string(8u << 20, 'x'));
  };
  say(client_end_.get(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(run_until([&] { return server_closed_ == "the other side is too slow"; }));
}

// Pauses that a protocol has: of an answer, of a tunnel, of a handler that does not take the body.
TEST_F(H1Test, WhoMayPauseIsNotLetGo) {
  serve();
  connect();
  server_->set_stall(milliseconds(30));
  client_->set_stall(milliseconds(30));
  at_request_ = [](Taken& taken) {
    taken.stream->send_response({200, {}, {Body::Kind::kUnknown, 0}});
    taken.stream->send_data("event");
  };
  open(request());
  ASSERT_TRUE(run_until([&] { return listener_.data == "event"; }));
  EXPECT_FALSE(
      run_until([&] { return !listener_.aborted.empty() || !server_closed_.empty(); }, milliseconds(150)));
  taken_[0]->stream->send_end({});
  ASSERT_TRUE(run_until([&] { return idle_ == 1; }));

  listener_ = {};
  at_request_ = [](Taken& taken) { taken.stream->send_response({101, {}, {}}); };
  RequestHead head = request();
  head.upgrade = "websocket";
  open(head);
  ASSERT_TRUE(run_until([&] { return !listener_.responses.empty(); }));
  stream_->send_data("ping");
  ASSERT_TRUE(run_until([&] { return taken_[1]->listener.data == "ping"; }));
  EXPECT_FALSE(
      run_until([&] { return !listener_.aborted.empty() || !server_closed_.empty(); }, milliseconds(150)));
}

}  // namespace
}  // namespace firestop::http
