// As a proxy that its client knows of.
#include "egress/testing/carrier_lab.h"

namespace firestop::egress::testing {
namespace {

std::string ok(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST_F(CarrierLab, ConnectThenTls) {
  beside([&] {
    UniqueFd client = proxy_client();
    send_all(client,
             "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Connection: keep-alive\r\n\r\n");
    EXPECT_EQ(received_until(client, "\r\n\r\n"), "HTTP/1.1 200 Connection established\r\n\r\n");
    TlsPeer guest = TlsPeer::client(std::move(client), authority_->certificate(), "a.example");
    ASSERT_TRUE(guest.ok());
    guest.send("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
    TlsPeer origin = tls_origin();
    origin.receive_until("\r\n\r\n");
    origin.send(ok("hello"));
    EXPECT_EQ(guest.receive_until("hello"), ok("hello"));
  });
  settle();
  EXPECT_EQ(record(), "request allowed https://a.example:443 GET /x 200\n");
}

TEST_F(CarrierLab, ConnectThenPlainHttp) {
  beside([&] {
    const UniqueFd client = proxy_client();
    send_all(client,
             "CONNECT a.example:8080 HTTP/1.1\r\nHost: a.example:8080\r\n\r\nGET /x HTTP/1.1\r\nHost: "
             "a.example:8080\r\n\r\n");
    const UniqueFd origin = this->origin();
    EXPECT_EQ(received_until(origin, "\r\n\r\n"), "GET /x HTTP/1.1\r\nHost: a.example:8080\r\n\r\n");
    send_all(origin, ok("hello"));
    EXPECT_EQ(received_until(client, "hello"), "HTTP/1.1 200 Connection established\r\n\r\n" + ok("hello"));
  });
  settle();
  EXPECT_EQ(record(), "request allowed http://a.example:8080 GET /x 200\n");
}

TEST_F(CarrierLab, ConnectThatIsDenied) {
  guard_.plan = [](const Authority&) {
    ConnectionPlan out;
    out.denial = denial(403, "egress.no_rule", "no rule");
    return out;
  };
  beside([&] {
    const UniqueFd client = proxy_client();
    send_all(client, "CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n");
    const std::string answer = received_all(client);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 Forbidden\r\n")) << answer;
    EXPECT_NE(answer.find("host: b.example\nport: 443\n"), std::string::npos) << answer;
  });
  settle();
  EXPECT_EQ(dialer_.dialled, 0);
  EXPECT_EQ(record(), "connection denied egress.no_rule tcp://b.example:443 CONNECT  403\n");
}

TEST_F(CarrierLab, inv08_APlaceholderInConnectIsAnAlarm) {
  guard_.placeholder = "sk-secret";
  for (const std::string request :
       {"CONNECT sk-secret.example:443 HTTP/1.1\r\nHost: sk-secret.example:443\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Bearer "
        "sk-secret\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nsk-secret: x\r\n\r\n"}) {
    crossings_.clear();
    beside([&] {
      const UniqueFd client = proxy_client();
      send_all(client, request);
      const std::string answer = received_all(client);
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 Forbidden\r\n")) << answer;
    });
    settle();
    ASSERT_EQ(crossings_.size(), 2u) << request << record();
    EXPECT_EQ(crossings_[0].kind, Crossing::Kind::kAlarm) << request;
    EXPECT_EQ(crossings_[0].credential, "model");
    EXPECT_EQ(crossings_[1].code, "credential.elsewhere");
  }
  EXPECT_EQ(dialer_.dialled, 0);
}

TEST_F(CarrierLab, AbsoluteFormToSeveralOriginsOnOneConnection) {
  beside([&] {
    const UniqueFd client = proxy_client();
    for (const std::string host : {"a.example", "b.example:8080"}) {
      send_all(client, "GET http://" + host + "/x HTTP/1.1\r\nHost: " + host +
                           "\r\nProxy-Connection: keep-alive\r\n\r\n");
      const UniqueFd origin = this->origin();
      EXPECT_EQ(received_until(origin, "\r\n\r\n"), "GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
      send_all(origin, ok(host));
      EXPECT_EQ(received_until(client, host), ok(host));
    }
  });
  settle();
  EXPECT_EQ(
      record(),
      "request allowed http://a.example:80 GET /x 200\nrequest allowed http://b.example:8080 GET /x 200\n");
}

TEST_F(CarrierLab, WhatIsNoProxyRequest) {
  beside([&] {
    for (const char* bytes :
         {"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
          "CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
          "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "\x16\x03\x01\r\n"}) {
      const UniqueFd client = proxy_client();
      send_all(client, bytes);
      EXPECT_TRUE(received_all(client).starts_with("HTTP/1.1 400 ")) << bytes;
    }
  });
  settle();
  EXPECT_EQ(dialer_.dialled, 0);
}

}  // namespace
}  // namespace firestop::egress::testing
