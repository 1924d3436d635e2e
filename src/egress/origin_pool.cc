#include "egress/origin_pool.h"

#include <algorithm>
#include <utility>

#include "egress/codes.h"
#include "http/deadline.h"
#include "http/socket_stream.h"

namespace firestop::egress {
namespace {

using Clock = std::chrono::steady_clock;

Denial failure(int status, const char* code, const Route& route, std::string message) {
  Denial out;
  out.status = status;
  out.code = code;
  out.rule = route.rule;
  out.message = std::move(message);
  return out;
}

}  // namespace

// One request that has no connection yet.
class OriginPool::Waiting : public Attempt {
 public:
  Waiting(Origin& origin, const http::RequestHead& the_head, http::StreamReceiver& the_receiver, Done on_done,
          Failed on_failed)
      : head(the_head),
        receiver(the_receiver),
        done(std::move(on_done)),
        failed(std::move(on_failed)),
        origin_(origin) {}
  ~Waiting() override;
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  const http::RequestHead& head;
  http::StreamReceiver& receiver;
  Done done;
  Failed failed;
  bool over = false;

 private:
  Origin& origin_;
};

struct OriginPool::Connection {
  explicit Connection(Loop& loop) : deadline(loop) {}
  std::unique_ptr<Dialer::Attempt> attempt;
  std::unique_ptr<http::TlsStream> shaking;
  std::unique_ptr<http::H1Client> h1;
  std::unique_ptr<http::H2Client> h2;
  std::string address;
  bool used = false;
  bool removed = false;  // waits for its end, and its origin may be gone
  Clock::time_point idle_since = Clock::now();
  http::Deadline deadline;  // of the handshake

  bool ready() const { return h1 || h2; }
  bool can_open() const { return (h1 && h1->can_open()) || (h2 && h2->can_open()); }
  bool idle() const { return (h1 && h1->can_open()) || (h2 && h2->streams() == 0); }
};

struct OriginPool::Origin {
  Route route;
  Wire wire{};
  std::list<std::unique_ptr<Connection>> connections;
  std::list<Waiting*> waiting;
  bool speaks_h2 = false;
  bool known = false;  // what it speaks
  Loop::Handle soon;

  size_t dialling() const {
    return static_cast<size_t>(
        std::count_if(connections.begin(), connections.end(), [](const auto& c) { return !c->ready(); }));
  }
};

OriginPool::Waiting::~Waiting() {
  if (!over) origin_.waiting.remove(this);
}

OriginPool::OriginPool(Loop& loop, Dialer& dialer, OriginTls& tls, std::chrono::milliseconds handshake)
    : loop_(loop), dialer_(dialer), tls_(tls), handshake_(handshake), later_(loop) {
  sweeper_ = loop_.every(std::chrono::seconds(5), [this] { sweep(); });
}

OriginPool::~OriginPool() = default;

OriginPool::Origin& OriginPool::origin_of(const Route& route, Wire wire) {
  std::string key = std::to_string(static_cast<int>(wire)) + (route.tls ? "s " : "p ") +
                    (route.private_addresses ? "v " : "- ") + route.to.host + " " +
                    std::to_string(route.to.port) + " " + route.connect_to + " " +
                    (route.ca ? *route.ca : "");
  auto& origin = origins_[std::move(key)];
  if (!origin) {
    origin = std::make_unique<Origin>();
    origin->route = route;
    origin->wire = wire;
    origin->known = !route.tls && wire != Wire::kH2c;
  }
  return *origin;
}

std::unique_ptr<OriginPool::Attempt> OriginPool::open(const Route& route, Wire wire,
                                                      const http::RequestHead& head,
                                                      http::StreamReceiver& receiver, Done done,
                                                      Failed failed) {
  Origin& origin = origin_of(route, wire);
  auto waiting = std::make_unique<Waiting>(origin, head, receiver, std::move(done), std::move(failed));
  origin.waiting.push_back(waiting.get());
  serve_soon(origin);
  return waiting;
}

void OriginPool::serve_soon(Origin& origin) {
  if (origin.soon) return;
  origin.soon = loop_.once(std::chrono::milliseconds(0), [this, &origin] {
    const auto now = std::move(origin.soon);
    serve(origin);
  });
}

void OriginPool::serve(Origin& origin) {
  while (!origin.waiting.empty() && serve_one(origin, *origin.waiting.front())) {
  }
  const size_t most = origin.speaks_h2 ? 1 : origin.known ? kMostToOne : kMostUnknown;
  const size_t wanted = std::min(origin.waiting.size(), most);
  for (size_t i = origin.dialling(); i < wanted; ++i) {
    if (connections_ >= kMostConnections || origin.connections.size() >= kMostToOne) break;
    dial(origin);
  }
}

// False: no connection can take it now.
bool OriginPool::serve_one(Origin& origin, Waiting& waiting) {
  const auto found = std::find_if(origin.connections.begin(), origin.connections.end(),
                                  [](const auto& connection) { return connection->can_open(); });
  if (found == origin.connections.end()) return false;
  Connection& connection = **found;
  auto stream = connection.h2 ? connection.h2->open(waiting.head, waiting.receiver)
                              : connection.h1->open(waiting.head, waiting.receiver);
  waiting.over = true;
  origin.waiting.remove(&waiting);
  if (!stream) {
    const auto failed = std::move(waiting.failed);
    failed(failure(400, codes::kBadRequest, origin.route, stream.error().message));
    return true;
  }
  const bool used_before = std::exchange(connection.used, true);
  const auto done = std::move(waiting.done);
  done({std::move(*stream), connection.address, used_before});
  return true;
}

void OriginPool::dial(Origin& origin) {
  auto made = std::make_unique<Connection>(loop_);
  Connection& connection = *made;
  origin.connections.push_back(std::move(made));
  ++connections_;
  connection.attempt = dialer_.dial(
      origin.route,
      [this, &origin, &connection](Dialled dialled) { on_dialled(origin, connection, std::move(dialled)); },
      [this, &origin, &connection](const Denial& denial) { on_failed(origin, connection, denial); });
}

void OriginPool::on_dialled(Origin& origin, Connection& connection, Dialled dialled) {
  later_.destroy(std::move(connection.attempt));
  connection.address = std::move(dialled.address);
  auto socket = std::make_unique<http::SocketStream>(loop_, std::move(dialled.socket));
  if (!origin.route.tls) {
    on_ready(origin, connection, std::move(socket), origin.wire == Wire::kH2c ? "h2" : "");
    return;
  }
  const std::vector<std::string> protocols = origin.wire == Wire::kAny
                                                 ? std::vector<std::string>{"h2", "http/1.1"}
                                                 : std::vector<std::string>{"http/1.1"};
  auto ssl = tls_.connect_tls(origin.route, protocols);
  if (!ssl) return on_failed(origin, connection, upstream_tls(origin.route, ssl.error()));
  connection.shaking = std::make_unique<http::TlsStream>(loop_, std::move(socket), std::move(*ssl));
  const auto late = [this, &origin, &connection] {
    on_failed(origin, connection,
              failure(504, codes::kUpstreamTls, origin.route,
                      origin.route.to.host + " does not finish the TLS handshake"));
  };
  connection.deadline.on_reached(late);
  connection.deadline.set(handshake_);
  connection.shaking->handshake([this, &origin, &connection](Result<void> result) {
    if (connection.removed) return;
    connection.deadline.clear();
    if (!result) return on_failed(origin, connection, upstream_tls(origin.route, result.error()));
    const std::string protocol = connection.shaking->protocol();
    on_ready(origin, connection, std::move(connection.shaking), protocol);
  });
}

void OriginPool::on_ready(Origin& origin, Connection& connection, std::unique_ptr<http::ByteStream> bytes,
                          const std::string& protocol) {
  const auto closed = [this, &origin, &connection](const std::string&) {
    if (connection.removed) return;
    remove(origin, connection);
    serve(origin);
  };
  const auto idle = [this, &origin, &connection] {
    if (connection.removed) return;
    connection.idle_since = Clock::now();
    // Later: what the origin sent behind its answer must not be taken for the next one.
    serve_soon(origin);
  };
  origin.known = true;
  if (protocol == "h2") {
    origin.speaks_h2 = true;
    connection.h2 = std::make_unique<http::H2Client>(loop_, std::move(bytes), closed, idle);
  } else {
    origin.speaks_h2 = false;
    connection.h1 = std::make_unique<http::H1Client>(loop_, std::move(bytes), closed, idle);
  }
  connection.idle_since = Clock::now();
  serve(origin);
}

// Every waiting request that has no other connection on its way fails with it; one that comes while they are
// told has a connection of its own.
void OriginPool::on_failed(Origin& origin, Connection& connection, const Denial& denial) {
  if (connection.removed) return;
  remove(origin, connection);
  const size_t on_their_way = origin.dialling(), all = origin.waiting.size();
  for (size_t i = on_their_way; i < all && !origin.waiting.empty(); ++i) {
    Waiting& waiting = *origin.waiting.front();
    waiting.over = true;
    origin.waiting.pop_front();
    const auto failed = std::move(waiting.failed);
    failed(denial);
  }
}

void OriginPool::remove(Origin& origin, Connection& connection) {
  const auto found = std::find_if(origin.connections.begin(), origin.connections.end(),
                                  [&](const auto& one) { return one.get() == &connection; });
  if (found == origin.connections.end()) return;
  connection.removed = true;
  connection.deadline.clear();
  later_.destroy(std::move(*found));
  origin.connections.erase(found);
  --connections_;
}

void OriginPool::sweep() {
  const auto now = Clock::now();
  for (auto it = origins_.begin(); it != origins_.end();) {
    Origin& origin = *it->second;
    for (auto& connection : origin.connections) {
      if (!connection->idle() || now - connection->idle_since < kIdle) continue;
      if (connection->h1) connection->h1->shut_down();
      if (connection->h2) connection->h2->shut_down();
    }
    const bool unused = origin.connections.empty() && origin.waiting.empty() && !origin.soon;
    it = unused ? origins_.erase(it) : std::next(it);
  }
}

}  // namespace firestop::egress
