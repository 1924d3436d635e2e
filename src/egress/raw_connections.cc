#include "egress/raw_connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include "egress/codes.h"

namespace firestop::egress {
namespace {

int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

const char* to_text(Tunnel::End end) {
  switch (end) {
    case Tunnel::End::kOrderly:
      return "";
    case Tunnel::End::kBroken:
      return "one side reset the connection";
    case Tunnel::End::kIdle:
      return "idle for too long";
    case Tunnel::End::kLimit:
      return "more bytes than limits.network.bytes allows";
  }
  return "";
}

}  // namespace

class RawConnections::Connection {
 public:
  Connection(RawConnections& all, Guest guest, const Route& route)
      : all_(all),
        socket_(std::move(guest.socket)),
        first_(std::move(guest.first)),
        place_(std::move(guest.place)) {
    crossing_.kind = Crossing::Kind::kConnection;
    crossing_.rule = route.rule;
    crossing_.scheme = std::move(guest.scheme);
    crossing_.host = guest.asked.host;
    crossing_.port = guest.asked.port;
    crossing_.source_port = guest.source_port;
    crossing_.started_us = now_us();
    attempt_ = all_.dialer_.dial(
        route, [this](Dialled dialled) { tunnel(std::move(dialled)); },
        [this](const Denial& denial) {
          reset();
          end(denial.status == 403 ? "denied" : "failed", denial.code, denial.message);
        });
  }
  ~Connection() {
    if (ended_) return;
    reset();
    tell("failed", "", "the sandbox ended");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 private:
  void tunnel(Dialled dialled) {
    attempt_.reset();
    crossing_.address = std::move(dialled.address);
    tunnel_ = std::make_unique<Tunnel>(
        all_.loop_, std::move(socket_), std::move(dialled.socket), std::move(first_), all_.limits_,
        [this](const Tunnel::Sum& sum) {
          crossing_.bytes_out = sum.out;
          crossing_.bytes_in = sum.in;
          end("allowed", sum.end == Tunnel::End::kLimit ? codes::kLimitBytes : "", to_text(sum.end));
        });
  }

  void reset() {
    if (!socket_.valid()) return;
    const linger now{1, 0};
    (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    socket_.reset();
  }

  void tell(const char* verdict, std::string code, std::string detail) {
    ended_ = true;
    crossing_.verdict = verdict;
    crossing_.code = std::move(code);
    crossing_.detail = std::move(detail);
    crossing_.detail.resize(std::min(crossing_.detail.size(), kMostDetail));
    crossing_.took_us = now_us() - crossing_.started_us;
    all_.record_(crossing_);
  }

  // Destroys this.
  void end(const char* verdict, std::string code, std::string detail) {
    tell(verdict, std::move(code), std::move(detail));
    all_.forget(this);
  }

  RawConnections& all_;
  UniqueFd socket_;
  std::string first_;
  std::shared_ptr<void> place_;
  Crossing crossing_;
  bool ended_ = false;
  std::unique_ptr<Dialer::Attempt> attempt_;
  std::unique_ptr<Tunnel> tunnel_;
};

RawConnections::RawConnections(Loop& loop, Dialer& dialer, Recorder record, Tunnel::Limits limits)
    : loop_(loop), dialer_(dialer), record_(std::move(record)), limits_(std::move(limits)) {}

RawConnections::~RawConnections() = default;

void RawConnections::start(Guest guest, const Route& route) {
  connections_.push_back(std::make_unique<Connection>(*this, std::move(guest), route));
}

void RawConnections::forget(const Connection* connection) {
  const auto found = std::find_if(connections_.begin(), connections_.end(),
                                  [&](const auto& one) { return one.get() == connection; });
  connections_.erase(found);
}

std::optional<Denial> server_name_differs(const codec::ClientHello& hello, const Route& route,
                                          const Authority& asked) {
  if (hello.server_name == asked.host) return std::nullopt;
  Denial out;
  out.status = 403;
  out.code = codes::kHostMismatch;
  out.rule = route.rule;
  out.message = hello.server_name.empty()
                    ? "the connection to " + asked.host + " names no server"
                    : "the connection to " + asked.host + " asks for the server " + hello.server_name;
  out.what_to_do = "the client must name the server that it connects to (SNI)";
  return out;
}

}  // namespace firestop::egress
