// Bodies both ways: as they came, as filters leave them, as fast as the slower side takes them.
#include <thread>

#include "egress/testing/carrier_lab.h"

namespace firestop::egress::testing {
namespace {

using http::Body;

std::string noise(size_t size) {
  std::string out(size, '\0');
  uint32_t state = 1;
  for (char& c : out) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return out;
}

// Does what the test says with each piece.
class Script : public Filter {
 public:
  using Feed = std::function<std::optional<Denial>(std::string_view, std::string&)>;
  using Finish = std::function<std::optional<Denial>(std::string&)>;
  Script(Feed feed, Finish finish, bool decides = false, std::string detail = "")
      : feed_(std::move(feed)), finish_(std::move(finish)), decides_(decides), detail_(std::move(detail)) {}
  std::optional<Denial> feed(std::string_view bytes, std::string& out) override { return feed_(bytes, out); }
  std::optional<Denial> finish(std::string& out) override { return finish_ ? finish_(out) : std::nullopt; }
  bool decides() const override { return decides_; }
  std::string detail() const override { return detail_; }

 private:
  Feed feed_;
  Finish finish_;
  bool decides_;
  std::string detail_;
};

// Lets nothing go before it has all, as a signature over a body makes it.
class Whole : public Filter {
 public:
  std::optional<Denial> feed(std::string_view bytes, std::string&) override {
    body_.append(bytes);
    return std::nullopt;
  }
  std::optional<Denial> finish(std::string& out) override {
    out += std::exchange(body_, {});
    return std::nullopt;
  }
  bool decides() const override { return true; }
  size_t held() const override { return body_.size(); }

 private:
  std::string body_;
};

std::unique_ptr<Filter> replacing(char from, std::string to) {
  return std::make_unique<Script>(
      [from, to](std::string_view bytes, std::string& out) -> std::optional<Denial> {
        for (char c : bytes) c == from ? (void)out.append(to) : out.push_back(c);
        return std::nullopt;
      },
      nullptr);
}

TEST_F(CarrierLab, BinaryUploadsArriveByteForByte) {
  const std::string body = noise(3 << 20);
  beside([&] {
    TlsPeer guest = tls_guest();
    std::thread sender([&] {
      guest.send("PUT /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: " + std::to_string(body.size()) +
                 "\r\n\r\n");
      guest.send(body);
    });
    TlsPeer origin = tls_origin();
    EXPECT_EQ(origin.receive_until("\r\n\r\n"),
              "PUT /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3145728\r\n\r\n");
    EXPECT_TRUE(origin.receive_exactly(body.size()) == body);
    sender.join();
    origin.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(guest.receive_until("\r\n\r\n"), "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  });
  settle();
  EXPECT_GE(crossings_.at(0).bytes_out, body.size());
}

TEST_F(CarrierLab, ChunksAndTrailersBothWays) {
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest,
             "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: "
             "chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nSum: 3\r\n\r\n");
    const UniqueFd origin = this->origin();
    EXPECT_EQ(received_until(origin, "0\r\nSum: 3\r\n\r\n"),
              "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nSum: "
              "3\r\n\r\n");
    send_all(origin, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nSum: 2\r\n\r\n");
    EXPECT_EQ(received_until(guest, "0\r\nSum: 2\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nSum: 2\r\n\r\n");
  });
  settle();
}

// The length is made right where a filter changes it, and the requests behind it stay whole.
TEST_F(CarrierLab, AChangedBodyHasItsRightLength) {
  guard_.admit = [](http::RequestHead& head, const Origin&) {
    if (head.method == "POST") head.body = {Body::Kind::kUnknown, 0};
    return std::nullopt;
  };
  guard_.answer = [](http::ResponseHead& head) {
    head.body = {Body::Kind::kUnknown, 0};
    return std::nullopt;
  };
  guard_.request_body = [] { return replacing('s', "a longer secret"); };
  guard_.response_body = [] { return replacing('S', ""); };
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest,
             "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\n-s-GET /2 HTTP/1.1\r\nHost: "
             "a.example\r\n\r\n");
    const UniqueFd origin = this->origin();
    EXPECT_EQ(received_until(origin, "0\r\n\r\n"),
              "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n-a longer "
              "secret-\r\n0\r\n\r\n");
    send_all(origin, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\naSSb");
    EXPECT_EQ(received_until(guest, "0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
    EXPECT_EQ(received_until(origin, "\r\n\r\n"), "GET /2 HTTP/1.1\r\nHost: a.example\r\n\r\n");
    send_all(origin, "HTTP/1.1 204 No Content\r\n\r\n");
    received_until(guest, "\r\n\r\n");
  });
  settle();
}

TEST_F(CarrierLab, AFilterMayDecideBeforeAnythingLeaves) {
  std::string seen;
  guard_.request_body = [&] {
    seen.clear();
    return std::make_unique<Script>(
        [&](std::string_view bytes, std::string& out) -> std::optional<Denial> {
          seen += bytes;
          if (seen.size() < 6) return std::nullopt;
          if (seen.starts_with("bad")) return denial(403, "egress.git_ref", "not that ref");
          out = std::exchange(seen, {});
          return std::nullopt;
        },
        [&](std::string& out) -> std::optional<Denial> {
          out = std::exchange(seen, {});
          return std::nullopt;
        },
        true, "a push");
  };
  beside([&] {
    const UniqueFd bad = guest();
    send_all(bad, "POST / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 8\r\n\r\n");
    EXPECT_EQ(received_until(bad, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n")
        << "the body is needed to decide";
    send_all(bad, "bad-push");
    EXPECT_NE(received_until(bad, "\r\n\r\n").find("X-Firestop-Code: egress.git_ref"), std::string::npos);
    const UniqueFd good = guest();
    send_all(good, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 8\r\n\r\ngood");
    send_all(good, "-one");
    const UniqueFd origin = this->origin();
    EXPECT_EQ(received_until(origin, "-one"),
              "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 8\r\n\r\ngood-one");
    send_all(origin, "HTTP/1.1 204 No Content\r\n\r\n");
    received_until(good, "\r\n\r\n");
    const UniqueFd small = guest();
    send_all(small, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc");
    EXPECT_EQ(received_until(origin, "abc"),
              "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc");
    send_all(origin, "HTTP/1.1 204 No Content\r\n\r\n");
    received_until(small, "\r\n\r\n");
  });
  settle();
  ASSERT_EQ(crossings_.size(), 3u);
  EXPECT_EQ(crossings_[0].detail, "not that ref");
  EXPECT_EQ(crossings_[1].detail, "a push");
  EXPECT_EQ(dialer_.dialled, 1) << "the denied one was not even connected";
}

TEST_F(CarrierLab, inv08_ABodyThatIsDeniedHalfWayNeverIsAWholeRequest) {
  guard_.request_body = [] {
    return std::make_unique<Script>(
        [](std::string_view bytes, std::string& out) -> std::optional<Denial> {
          if (bytes.find("placeholder") != std::string_view::npos)
            return denial(403, "credential.elsewhere", "in the body");
          out = bytes;
          return std::nullopt;
        },
        nullptr);
  };
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 16\r\n\r\nstart");
    const UniqueFd origin = this->origin();
    EXPECT_TRUE(received_until(origin, "start").ends_with("\r\n\r\nstart"));
    send_all(guest, "placeholder");
    EXPECT_NE(received_until(guest, "\r\n\r\n").find("X-Firestop-Code: credential.elsewhere"),
              std::string::npos);
    EXPECT_EQ(received_all(origin), "") << "and then the connection ends";
  });
  settle();
  EXPECT_EQ(record(), "request denied credential.elsewhere http://a.example:80 POST / 403\n");
}

TEST_F(CarrierLab, AnAnswerThatIsDeniedHalfWayIsABreak) {
  guard_.response_body = [] {
    return std::make_unique<Script>(
        [](std::string_view bytes, std::string& out) -> std::optional<Denial> {
          if (bytes.find('!') != std::string_view::npos) return denial(502, "egress.bad_request", "not gzip");
          out = bytes;
          return std::nullopt;
        },
        nullptr);
  };
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    const UniqueFd origin = this->origin();
    received_until(origin, "\r\n\r\n");
    send_all(origin, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    EXPECT_TRUE(received_until(guest, "hello").ends_with("hello"));
    send_all(origin, "!!!!!");
    EXPECT_EQ(received_all(guest), "");
  });
  settle();
  EXPECT_EQ(crossings_.at(0).code, "egress.bad_request");
}

TEST_F(CarrierLab, EventsComeOneByOne) {
  beside([&] {
    TlsPeer guest = tls_guest();
    guest.send("GET /events HTTP/1.1\r\nHost: a.example\r\nAccept: text/event-stream\r\n\r\n");
    TlsPeer origin = tls_origin();
    origin.receive_until("\r\n\r\n");
    origin.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    guest.receive_until("\r\n\r\n");
    for (int i = 0; i < 5; ++i) {
      origin.send("9\r\ndata: " + std::to_string(i) + "\n\n\r\n");
      EXPECT_EQ(guest.receive_until("\n\n\r\n"), "9\r\ndata: " + std::to_string(i) + "\n\n\r\n");
    }
    origin.send("0\r\n\r\n");
    EXPECT_EQ(guest.receive_until("0\r\n\r\n"), "0\r\n\r\n");
  });
  settle();
}

TEST_F(CarrierLab, ContinueIsTheOriginsToSay) {
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    const UniqueFd origin = this->origin();
    EXPECT_EQ(received_until(origin, "\r\n\r\n"),
              "PUT / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    send_all(origin, "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(received_until(guest, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    send_all(guest, "hi");
    EXPECT_EQ(received_exactly(origin, 2), "hi");
    send_all(origin, "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(received_until(guest, "\r\n\r\n"), "HTTP/1.1 204 No Content\r\n\r\n");
  });
  settle();
}

TEST_F(CarrierLab, BodiesThatAreNone) {
  beside([&] {
    const UniqueFd guest = this->guest();
    const UniqueFd* origin = nullptr;
    UniqueFd accepted_once;
    const auto ask = [&](const std::string& line, const std::string& answer) {
      send_all(guest, line + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
      if (!origin) {
        accepted_once = this->origin();
        origin = &accepted_once;
      }
      EXPECT_EQ(received_until(*origin, "\r\n\r\n"), line + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
      send_all(*origin, answer);
      EXPECT_EQ(received_until(guest, "\r\n\r\n"), answer);
    };
    ask("HEAD /", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    ask("OPTIONS *", "HTTP/1.1 200 OK\r\nAllow: GET\r\nContent-Length: 0\r\n\r\n");
    ask("GET /a%2Fb/%2e%2e/c", "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n");
    ask("GET /", "HTTP/1.1 204 No Content\r\n\r\n");
    ask("GET /last", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  settle();
  EXPECT_EQ(dialer_.dialled, 1);
}

TEST_F(CarrierLab, AnAnswerUntilTheConnectionsEnd) {
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    UniqueFd origin = this->origin();
    received_until(origin, "\r\n\r\n");
    send_all(origin, "HTTP/1.0 200 OK\r\n\r\nhello");
    origin.reset();
    EXPECT_EQ(received_until(guest, "0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  });
  settle();
}

TEST_F(CarrierLab, AnAnswerThatBreaksOffIsNotWhole) {
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    UniqueFd origin = this->origin();
    received_until(origin, "\r\n\r\n");
    send_all(origin, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    received_until(guest, "hello\r\n");
    origin.reset();
    EXPECT_EQ(received_all(guest), "");
  });
  settle();
  EXPECT_EQ(record(), "request failed http://a.example:80 GET / 200\n");
}

// Frames right behind the 101, both ways, and filters on both.
TEST_F(CarrierLab, AWebSocket) {
  guard_.websocket_out = [] { return replacing('s', "secret"); };
  guard_.websocket_in = [] { return replacing('S', "*"); };
  beside([&] {
    TlsPeer guest = tls_guest();
    guest.send(
        "GET /ws HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: "
        "websocket\r\nSec-WebSocket-Key: k\r\n\r\n");
    TlsPeer origin = tls_origin();
    EXPECT_EQ(origin.receive_until("\r\n\r\n"),
              "GET /ws HTTP/1.1\r\nHost: a.example\r\nSec-WebSocket-Key: k\r\nConnection: "
              "Upgrade\r\nUpgrade: websocket\r\n\r\n");
    origin.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: "
        "websocket\r\nSec-WebSocket-Accept: a\r\n\r\nfirst S");
    EXPECT_EQ(guest.receive_until("first *"),
              "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nConnection: "
              "Upgrade\r\nUpgrade: websocket\r\n\r\nfirst *");
    guest.send("a-s");
    EXPECT_EQ(origin.receive_exactly(8), "a-secret");
  });
  settle();
  EXPECT_EQ(guard_.heads.at(0).upgrade, "websocket");
  EXPECT_EQ(crossings_.at(0).status, 101);
}

TEST_F(CarrierLab, ASlowReaderHoldsUpTheOriginAndNothingGrows) {
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    const UniqueFd origin = this->origin();
    received_until(origin, "\r\n\r\n");
    const timeval patience{0, 300000};
    ::setsockopt(origin.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const std::string block(1 << 20, 'x');
    send_all(origin, "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n");
    size_t sent = 0;
    for (ssize_t n = 0; sent < (64u << 20) && n >= 0;) {
      n = ::send(origin.get(), block.data(), block.size(), MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<size_t>(n);
    }
    EXPECT_LT(sent, 24u << 20) << "buffers of four sockets and our own";
    std::thread rest([&] {
      while (sent < (64u << 20)) {
        const ssize_t n = ::send(origin.get(), block.data(),
                                 std::min<size_t>(block.size(), (64u << 20) - sent), MSG_NOSIGNAL);
        if (n > 0) sent += static_cast<size_t>(n);
      }
    });
    received_until(guest, "\r\n\r\n");
    size_t got = 0;
    for (size_t more = 1; got < (64u << 20) && more > 0; got += more) more = received(guest, 1u << 16).size();
    EXPECT_EQ(got, 64u << 20);
    rest.join();
  });
  settle();
}

TEST_F(CarrierLab, ASlowOriginHoldsUpTheUpload) {
  beside([&] {
    const UniqueFd guest = this->guest();
    const timeval patience{0, 300000};
    ::setsockopt(guest.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    send_all(guest, "PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 67108864\r\n\r\n");
    const UniqueFd origin = this->origin();
    const std::string block(1 << 20, 'x');
    size_t sent = 0;
    for (ssize_t n = 0; sent < (64u << 20) && n >= 0;) {
      n = ::send(guest.get(), block.data(), block.size(), MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<size_t>(n);
    }
    EXPECT_LT(sent, 24u << 20);
  });
  settle();
}

// Bodies that wait are bounded one by one, and all together: what does not fit is refused, the others go on.
TEST_F(CarrierLab, inv05_BodiesThatWaitAreBoundedTogether) {
  most_held_ = 1 << 20;
  guard_.request_body = [] { return std::make_unique<Whole>(); };
  start();
  const std::string body = noise(400 << 10);
  const std::string head =
      "PUT /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: " + std::to_string(body.size() + 1) + "\r\n\r\n";
  const auto begin = [&] {
    UniqueFd guest = this->guest();
    send_all(guest, head);
    send_all(guest, body);
    return guest;
  };
  const auto finish = [&](const UniqueFd& guest) {
    send_all(guest, "z");
    const UniqueFd origin = this->origin();
    received_until(origin, "\r\n\r\n");
    EXPECT_TRUE(received_exactly(origin, body.size()) == body);
    EXPECT_EQ(received_exactly(origin, 1), "z");
    send_all(origin, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(received_until(guest, "\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  };
  // Each answer takes a turn of the loop, and each turn reads 128 KiB of whoever has sent.
  const auto all_is_read = [&] {
    for (size_t turn = 0; turn <= body.size() / (128 << 10) + 2; ++turn) {
      const UniqueFd guest = this->guest();
      send_all(guest, "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b\r\n\r\n");
      received_until(guest, "\r\n\r\n");
    }
  };
  beside([&] {
    const UniqueFd first = begin(), second = begin();
    all_is_read();
    const UniqueFd third = begin();
    const std::string refused = received_until(third, "again.\n");
    EXPECT_TRUE(refused.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << refused;
    EXPECT_NE(refused.find("limit.held"), std::string::npos) << refused;
    finish(first);
    finish(second);
    // What they held was given back.
    finish(begin());
  });
}

}  // namespace
}  // namespace firestop::egress::testing
