// Connections to origins, by what they were dialled for: made when a request needs one, kept for the next,
// HTTP/2 or HTTP/1.1 as the origin chooses.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "egress/dialer.h"
#include "egress/guard.h"
#include "egress/later.h"
#include "egress/origin_tls.h"
#include "http/h1_client.h"
#include "http/h2_client.h"
#include "http/tls_stream.h"

namespace firestop::egress {

class OriginPool {
 public:
  static constexpr size_t kMostConnections = 1024;
  static constexpr size_t kMostToOne = 128;  // with the same route
  static constexpr size_t kMostUnknown =
      4;  // that are dialled at once before one says what the origin speaks
  static constexpr std::chrono::seconds kIdle{45};  // below what origins allow, mostly 60 s and more
  static constexpr std::chrono::seconds kHandshake{10};

  enum class Wire {
    kAny,    // TLS: what the origin chooses; plain: HTTP/1.1
    kHttp1,  // for an upgrade
    kH2c,    // plain HTTP/2 at once, as the guest did
  };
  struct Opened {
    std::unique_ptr<http::ClientStream> stream;
    std::string address;  // that was dialled
    bool used_before = false;
  };
  using Done = std::function<void(Opened)>;
  using Failed = std::function<void(Denial)>;
  // Destroying it ends the attempt; no callback afterwards.
  class Attempt {
   public:
    virtual ~Attempt() = default;
  };

  // Dialer and TLS outlive it. `handshake`: how long an origin may take for its own.
  OriginPool(Loop& loop, Dialer& dialer, OriginTls& tls, std::chrono::milliseconds handshake = kHandshake);
  ~OriginPool();
  OriginPool(const OriginPool&) = delete;
  OriginPool& operator=(const OriginPool&) = delete;

  // `head` and `receiver` outlive the attempt. Calls one of the two, once, from the loop.
  std::unique_ptr<Attempt> open(const Route& route, Wire wire, const http::RequestHead& head,
                                http::StreamReceiver& receiver, Done done, Failed failed);
  size_t connections() const { return connections_; }

 private:
  struct Connection;
  struct Origin;
  class Waiting;

  Origin& origin_of(const Route& route, Wire wire);
  void serve_soon(Origin& origin);
  void serve(Origin& origin);
  bool serve_one(Origin& origin, Waiting& waiting);
  void dial(Origin& origin);
  void on_dialled(Origin& origin, Connection& connection, Dialled dialled);
  void on_ready(Origin& origin, Connection& connection, std::unique_ptr<http::ByteStream> bytes,
                const std::string& protocol);
  void on_failed(Origin& origin, Connection& connection, const Denial& denial);
  void remove(Origin& origin, Connection& connection);
  void sweep();

  Loop& loop_;
  Dialer& dialer_;
  OriginTls& tls_;
  const std::chrono::milliseconds handshake_;
  std::map<std::string, std::unique_ptr<Origin>> origins_;
  size_t connections_ = 0;
  Later later_;
  Loop::Handle sweeper_;
};

}  // namespace firestop::egress
