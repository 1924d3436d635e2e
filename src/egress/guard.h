// Where HTTP meets policy: for every exchange the carrier (src/http, carrier.h) asks a Guard, which decides
// by the rules, puts credentials in, and looks at what goes by. The carrier knows no rule, the guard no
// socket.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/denial.h"
#include "http/filter.h"
#include "http/message.h"

namespace firestop::egress {

using http::Authority;
using http::Denial;
using http::Filter;

// Where a permitted exchange or connection is dialled.
struct Route {
  Authority to;                    // name (or address) and port
  bool tls = true;                 // towards the origin
  bool private_addresses = false;  // the rule says `private: true`, or the operator mapped it
  std::string connect_to;          // "ADDRESS:PORT" that the operator gave instead of resolving; else ""
  std::string rule;                // "egress[2]"
  std::string credential;          // name, for the record; only when it was put in
  std::shared_ptr<const std::string> ca;  // PEM: trusted for this origin besides the host's store; or null
};

// One request and its answer.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // May change `head` (which outlives this call's answer). `done` is called once, now or later on the loop's
  // thread, and not after destruction: nothing means it may go on to route().
  virtual void admit(http::RequestHead& head, std::function<void(std::optional<Denial>)> done) = 0;
  // Until a request_body() that decides() gives its first byte, it may still change `head`.
  virtual const Route& route() const = 0;  // after admit
  virtual Filter* request_body() = 0;      // null: bytes pass as they are; owned by the exchange
  virtual std::optional<Denial> request_trailers(http::Headers& trailers) = 0;  // after the body's finish()
  // The answer's head, which may be changed; also called for 1xx and 101. A denial replaces the answer.
  virtual std::optional<Denial> answer(http::ResponseHead& head) = 0;
  virtual Filter* response_body() = 0;
  virtual std::optional<Denial> answer_trailers(http::Headers& trailers) = 0;
  // After 101 both directions go through these two (null: as they are).
  virtual Filter* websocket_out() = 0;
  virtual Filter* websocket_in() = 0;
  // For the record: credentials whose placeholders passed in what the guest sent (Crossing::in_body).
  virtual std::string in_body() const { return {}; }
};

// How a connection may be used, decided before any byte of it is answered.
struct ConnectionPlan {
  enum class Use {
    kHttp,         // intercept TLS, read HTTP; or plain HTTP where a rule allows it
    kPassThrough,  // `tls`: forwarded unread when the server name agrees
    kTcp,          // `tcp`: forwarded as it is
    kDeny,
  };
  Use use = Use::kDeny;
  Route route;    // of kPassThrough and kTcp
  Denial denial;  // of kDeny
};

struct Origin {             // of an exchange
  Authority asked;          // name behind the address (or of CONNECT) and port
  std::string server_name;  // SNI; empty without TLS
  bool tls = false;
  uint16_t source_port = 0;
};

class Guard {
 public:
  virtual ~Guard() = default;
  // Canonical name: whether any rule could let it be reached. Nothing is asked upstream otherwise. A name
  // that carries a placeholder is an alarm.
  virtual std::optional<Denial> name(std::string_view host) = 0;
  // `to.host`: a canonical name, or an address as text ("192.0.2.1", "2001:db8::1") where none was asked for.
  virtual ConnectionPlan connection(const Authority& to) = 0;
  virtual std::unique_ptr<Exchange> exchange(const Origin& origin) = 0;
  // What is seen without an exchange: an alarm if a placeholder stands in it, else nothing. The name is that
  // of TLS; the head is CONNECT's, or that of a request on a connection that is denied.
  virtual std::optional<Denial> alarm_in_server_name(std::string_view name) = 0;
  virtual std::optional<Denial> alarm_in(const http::RequestHead& head) = 0;
};

}  // namespace firestop::egress
