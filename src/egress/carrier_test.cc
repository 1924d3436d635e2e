#include "egress/carrier.h"

#include "egress/testing/carrier_lab.h"

namespace firestop::egress::testing {
namespace {

using Use = ConnectionPlan::Use;

std::string ok(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST_F(CarrierLab, PlainHttpIsKeptAliveAndPipelined) {
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(
        guest,
        "GET /1?q HTTP/1.1\r\nHost: a.example\r\nX: y\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.example\r\n\r\n");
    const UniqueFd origin = this->origin();
    EXPECT_EQ(received_until(origin, "\r\n\r\n"), "GET /1?q HTTP/1.1\r\nHost: a.example\r\nX: y\r\n\r\n");
    send_all(origin,
             "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX: y\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_EQ(received_until(origin, "\r\n\r\n"), "GET /2 HTTP/1.1\r\nHost: a.example\r\n\r\n")
        << "on the same connection";
    send_all(origin, ok("again"));
    EXPECT_EQ(received_until(guest, "again"),
              "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX: y\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nhi" +
                  ok("again"));
  });
  settle();
  EXPECT_EQ(dialer_.dialled, 1);
  EXPECT_EQ(
      record(),
      "request allowed http://a.example:80 GET /1 200\nrequest allowed http://a.example:80 GET /2 200\n");
  EXPECT_EQ(crossings_[0].source_port, 7);
  EXPECT_EQ(crossings_[0].rule, "egress[0]");
  EXPECT_EQ(crossings_[0].address, "127.0.0.1:" + std::to_string(dialer_.port));
  EXPECT_GT(crossings_[0].bytes_in, 2u);
}

TEST_F(CarrierLab, TlsIsOpenedAndHeadsMayBeChanged) {
  guard_.admit = [](http::RequestHead& head, const Origin&) {
    head.headers = {{"Authorization", "Bearer real"}};
    return std::nullopt;
  };
  beside([&] {
    TlsPeer guest = tls_guest();
    ASSERT_TRUE(guest.ok());
    guest.send("GET / HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer placeholder\r\n\r\n");
    TlsPeer origin = tls_origin();
    ASSERT_TRUE(origin.ok());
    EXPECT_EQ(origin.receive_until("\r\n\r\n"),
              "GET / HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer real\r\n\r\n");
    origin.send(ok("hello"));
    EXPECT_EQ(guest.receive_until("hello"), ok("hello"));
  });
  settle();
  ASSERT_EQ(guard_.origins.size(), 1u);
  EXPECT_TRUE(guard_.origins[0].tls);
  EXPECT_EQ(guard_.origins[0].server_name, "a.example");
  EXPECT_EQ(guard_.origins[0].asked, (Authority{"a.example", 443}));
  EXPECT_EQ(record(), "request allowed https://a.example:443 GET / 200\n");
}

// What the guard needs to see that a request names another host than its connection.
TEST_F(CarrierLab, inv07_TheGuardSeesEveryNameThatARequestHas) {
  guard_.admit = [](http::RequestHead& head, const Origin& origin) -> std::optional<Denial> {
    if (head.authority == origin.asked && origin.server_name == origin.asked.host) return std::nullopt;
    return denial(403, "egress.host_mismatch", "two names");
  };
  beside([&] {
    TlsPeer fronting = tls_guest();
    fronting.send("GET / HTTP/1.1\r\nHost: b.example\r\n\r\n");
    EXPECT_TRUE(fronting.receive_until("\r\n").starts_with("HTTP/1.1 403 "));
    TlsPeer absolute = tls_guest();
    absolute.send("GET https://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n");
    EXPECT_TRUE(absolute.receive_until("\r\n").starts_with("HTTP/1.1 403 "));
    TlsPeer other = tls_guest("b.example");
    other.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    EXPECT_TRUE(other.receive_until("\r\n").starts_with("HTTP/1.1 403 "));
  });
  settle();
  EXPECT_EQ(dialer_.dialled, 0);
  const std::string line = "request denied egress.host_mismatch https://a.example:443 GET / 403\n";
  EXPECT_EQ(record(), line + line + line);
}

TEST_F(CarrierLab, ADenialHasABody) {
  guard_.admit = [](http::RequestHead&, const Origin&) {
    return denial(403, "egress.path", "not that path");
  };
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbody");
    const std::string head = received_until(guest, "\r\n\r\n");
    EXPECT_NE(head.find("X-Firestop-Code: egress.path\r\n"), std::string::npos) << head;
    EXPECT_NE(head.find("Content-Type: text/plain"), std::string::npos);
    EXPECT_EQ(received_until(guest, "ask for it\n"),
              "firestop: egress.path\nnot that path\nhost: a.example\nport: 80\nrule: egress[0]\nwhat to do: "
              "ask for it\n");
    // The body was taken, so the connection goes on.
    send_all(guest, "GET /x HTTP/1.1\r\nHost: a.example\r\nAccept: application/json\r\n\r\n");
    EXPECT_NE(received_until(guest, "\r\n\r\n").find("Content-Type: application/json"), std::string::npos);
    EXPECT_EQ(
        received_until(guest, "}}\n"),
        R"({"firestop":{"code":"egress.path","host":"a.example","message":"not that path","port":80,"rule":"egress[0]","what_to_do":"ask for it"}})"
        "\n");
  });
  settle();
  EXPECT_EQ(dialer_.dialled, 0);
}

TEST_F(CarrierLab, AnAlarmIsToldBesideItsRequest) {
  guard_.admit = [](http::RequestHead&, const Origin&) {
    Denial out = denial(403, "credential.elsewhere", "in a header");
    out.alarm = true;
    out.credential = "model";
    return out;
  };
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
    received_until(guest, "\r\n\r\n");
  });
  settle();
  EXPECT_EQ(record(),
            "alarm denied credential.elsewhere http://a.example:80 GET /x\n"
            "request denied credential.elsewhere http://a.example:80 GET /x 403\n");
  EXPECT_EQ(crossings_[0].credential, "model");
}

// Of TLS that is opened, and of TLS that is passed through.
TEST_F(CarrierLab, inv08_APlaceholderInTheServerNameIsAnAlarm) {
  guard_.placeholder = "sk-secret";
  for (const auto use : {ConnectionPlan::Use::kHttp, ConnectionPlan::Use::kPassThrough}) {
    crossings_.clear();
    guard_.plan = [use](const Authority&) { return plan(use); };
    beside([&] { EXPECT_FALSE(tls_guest("sk-secret.a.example").ok()); });
    settle();
    EXPECT_EQ(record(),
              "alarm denied credential.elsewhere tcp://a.example:443\n"
              "connection denied credential.elsewhere tcp://a.example:443\n");
    ASSERT_FALSE(crossings_.empty());
    EXPECT_EQ(crossings_[0].credential, "model");
  }
  EXPECT_EQ(dialer_.dialled, 0);
}

TEST_F(CarrierLab, inv08_APlaceholderInARequestThatIsDeniedAnywayIsAnAlarm) {
  guard_.placeholder = "sk-secret";
  guard_.plan = [](const Authority&) {
    ConnectionPlan out;
    out.denial = denial(403, "egress.no_rule", "no rule");
    return out;
  };
  for (const std::string head : {"GET / HTTP/1.1\r\nHost: sk-secret.example\r\n\r\n",
                                 "GET / HTTP/1.1\r\nHost: a.example\r\nX-Key: sk-secret\r\n\r\n"}) {
    crossings_.clear();
    beside([&] {
      const UniqueFd guest = this->guest();
      send_all(guest, head);
      EXPECT_TRUE(received_until(guest, "\r\n\r\n").starts_with("HTTP/1.1 403 "));
    });
    settle();
    EXPECT_EQ(record(),
              "alarm denied credential.elsewhere http://a.example:80 GET /\n"
              "request denied credential.elsewhere http://a.example:80 GET / 403\n");
  }
}

TEST_F(CarrierLab, inv07_WhatIsNotClearIsAnsweredWith400AndNeverForwarded) {
  const char* requests[] = {
      "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
      ("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n"),
      "GET / HTTP/1.1\r\nHost: a.example\r\nX: a\r\n b\r\n\r\n",
      "GET / HTTP/1.1\nHost: a.example\n\n",
      "GET /\x80 HTTP/1.1\r\nHost: a.example\r\n\r\n",
      "GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
      "CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n",
      "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
  };
  beside([&] {
    for (const char* request : requests) {
      const UniqueFd guest = this->guest();
      send_all(guest, request);
      EXPECT_TRUE(received_all(guest).starts_with("HTTP/1.1 400 ")) << request;
    }
  });
  settle();
  EXPECT_EQ(dialer_.dialled, 0);
  EXPECT_TRUE(guard_.heads.empty());
  ASSERT_EQ(crossings_.size(), std::size(requests));
  for (const Crossing& crossing : crossings_) EXPECT_EQ(crossing.code, "egress.bad_request");
}

TEST_F(CarrierLab, AConnectionThatIsDeniedIsToldSoInItsOwnWords) {
  guard_.plan = [](const Authority&) {
    ConnectionPlan out;
    out.denial = denial(403, "egress.no_rule", "no rule");
    return out;
  };
  beside([&] {
    const UniqueFd plain = guest();
    send_all(plain, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    EXPECT_NE(received_until(plain, "\r\n\r\n").find("X-Firestop-Code: egress.no_rule"), std::string::npos);
    TlsPeer tls = tls_guest();
    ASSERT_TRUE(tls.ok());
    tls.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    EXPECT_NE(tls.receive_until("\r\n\r\n").find("X-Firestop-Code: egress.no_rule"), std::string::npos);
    const UniqueFd raw = guest();
    send_all(raw, "\x01\x02\x03");
    char byte = 0;
    EXPECT_EQ(::recv(raw.get(), &byte, 1, 0), -1);
    EXPECT_EQ(errno, ECONNRESET);
  });
  settle();
  EXPECT_EQ(dialer_.dialled, 0);
  EXPECT_TRUE(guard_.origins.empty());
  EXPECT_EQ(record(),
            "request denied egress.no_rule http://a.example:80 GET / 403\n"
            "request denied egress.no_rule https://a.example:443 GET / 403\n"
            "connection denied egress.no_rule tcp://a.example:80\n");
}

TEST_F(CarrierLab, WhatIsNeitherTlsNorHttpIsReset) {
  first_bytes_ = std::chrono::milliseconds(100);
  start();
  beside([&] {
    for (const char* bytes : {"\x01\x02", "EHLO\r\n", "\x16\x03\x01\x00", "GET", ""}) {
      const UniqueFd guest = this->guest();
      send_all(guest, bytes);
      char byte = 0;
      EXPECT_EQ(::recv(guest.get(), &byte, 1, 0), -1) << bytes;
      EXPECT_EQ(errno, ECONNRESET) << bytes;
    }
  });
  settle();
  EXPECT_EQ(crossings_.size(), 5u);
  for (const Crossing& crossing : crossings_)
    EXPECT_TRUE(crossing.code == "egress.protocol" || crossing.code == "egress.bad_request") << crossing.code;
}

TEST_F(CarrierLab, RawConnectionsAndPassThrough) {
  guard_.plan = [](const Authority& to) { return plan(to.port == 80 ? Use::kTcp : Use::kPassThrough); };
  beside([&] {
    const UniqueFd raw = guest();
    send_all(raw, "hello");
    const UniqueFd origin = this->origin();
    EXPECT_EQ(received_exactly(origin, 5), "hello");
    send_all(origin, "world");
    EXPECT_EQ(received_exactly(raw, 5), "world");
    const UniqueFd other = guest(443);
    const std::string name = "b.example";
    TlsPeer peer = TlsPeer::client(guest(443), authority_->certificate(), "b.example");
    EXPECT_FALSE(peer.ok()) << "another server's name";
  });
  loop_.once(std::chrono::milliseconds(0), [] {});
  EXPECT_EQ(dialer_.dialled, 1);
  EXPECT_NE(record().find("connection denied egress.host_mismatch tcp://a.example:443\n"), std::string::npos)
      << record();
}

TEST_F(CarrierLab, AnOriginThatCannotBeReachedOrTrusted) {
  dialer_.failure = denial(504, "egress.unreachable", "it does not answer");
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    EXPECT_TRUE(received_until(guest, "\r\n\r\n").starts_with("HTTP/1.1 504 Gateway Timeout\r\n"));
  });
  dialer_.failure.reset();
  beside([&] {
    TlsPeer guest = tls_guest();
    guest.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    auto ssl =
        authority_->accept_tls("a.example", {"http/1.1"});  // of an authority that the host does not trust
    TlsPeer origin = TlsPeer::server(this->origin(), std::move(*ssl));
    EXPECT_FALSE(origin.ok());
    EXPECT_NE(guest.receive_until("\r\n\r\n").find("X-Firestop-Code: egress.upstream_tls"),
              std::string::npos);
  });
  settle();
  EXPECT_EQ(record(),
            "request failed egress.unreachable http://a.example:80 GET / 504\n"
            "request failed egress.upstream_tls https://a.example:443 GET / 502\n");
}

// A kept connection that the origin closes while it is used again is nobody's fault.
TEST_F(CarrierLab, AGetIsTriedAgainOnAFreshConnectionAndAPostIsNot) {
  const auto twice = [&](const std::string& second, bool again) {
    beside([&] {
      const UniqueFd guest = this->guest();
      send_all(guest, "GET /1 HTTP/1.1\r\nHost: a.example\r\n\r\n");
      UniqueFd origin = this->origin();
      received_until(origin, "\r\n\r\n");
      send_all(origin, ok("1"));
      received_until(guest, "\r\n\r\n1");
      send_all(guest, second);
      received_until(origin, "\r\n\r\n");
      origin.reset();
      if (again) {
        origin = this->origin();
        received_until(origin, "\r\n\r\n");
        send_all(origin, ok("2"));
        EXPECT_EQ(received_until(guest, "\r\n\r\n2"), ok("2"));
      } else {
        EXPECT_TRUE(received_until(guest, "\r\n\r\n").starts_with("HTTP/1.1 502 "));
      }
    });
    settle();
    start();
  };
  twice("GET /2 HTTP/1.1\r\nHost: a.example\r\n\r\n", true);
  twice("POST /2 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n", false);
}

TEST_F(CarrierLab, BytesAreLimited) {
  uint64_t left = 3000;
  spend_ = [&](uint64_t bytes) {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  start();
  beside([&] {
    const UniqueFd guest = this->guest();
    send_all(guest,
             "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5000\r\n\r\n" + std::string(5000, 'x'));
    EXPECT_NE(received_until(guest, "\r\n\r\n").find("X-Firestop-Code: limit.bytes"), std::string::npos);
  });
  settle();
  EXPECT_EQ(record(), "request denied limit.bytes http://a.example:80 POST / 403\n");
}

TEST_F(CarrierLab, WhatWasUnderWayIsRecordedWhenTheProxyEnds) {
  UniqueFd guest, origin;
  beside([&] {
    guest = this->guest();
    send_all(guest, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    origin = this->origin();
    received_until(origin, "\r\n\r\n");
  });
  carrier_.reset();
  EXPECT_EQ(record(), "request failed http://a.example:80 GET /\n");
}

}  // namespace
}  // namespace firestop::egress::testing
