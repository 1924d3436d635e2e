#include "egress/tunnel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace firestop::egress {
namespace {

constexpr int kMostInOneTurn = 8;  // pieces, before other connections get their turn

}  // namespace

Tunnel::Tunnel(Loop& loop, UniqueFd guest, UniqueFd origin, std::string first, Limits limits,
               std::function<void(const Sum&)> done)
    : loop_(loop),
      limits_(std::move(limits)),
      done_(std::move(done)),
      last_(std::chrono::steady_clock::now()) {
  sides_[0].socket = std::move(guest);
  sides_[1].socket = std::move(origin);
  sides_[0].bytes = first.size();
  sides_[1].unsent = std::move(first);
  for (size_t i = 0; i < sides_.size(); ++i)
    sides_[i].watch = loop_.watch(sides_[i].socket.get(), 0, [this, i](int events) { turn(i, events); });
  clock_ = loop_.every(std::min(limits_.idle, limits_.half_closed) / 4, [this] { look_at_clock(); });
  if (!sides_[1].unsent.empty() && limits_.spend && !limits_.spend(sides_[1].unsent.size())) {
    soon_ = loop_.once(std::chrono::milliseconds(0), [this] { end(End::kLimit); });
    return;
  }
  set_events();
}

Tunnel::~Tunnel() = default;

void Tunnel::turn(size_t index, int events) {
  Side& side = sides_[index];
  Side& other = sides_[1 - index];
  if ((events & Loop::kWritable) && !send(side, other.ended)) return end(End::kBroken);
  // A hangup without anything to read is found by reading.
  for (int i = 0; i < kMostInOneTurn && (events & (Loop::kReadable | Loop::kHangup)); ++i) {
    if (side.ended || !other.unsent.empty()) break;
    const uint64_t before = side.bytes;
    if (!receive(side, other)) return end(End::kBroken);
    const uint64_t fresh = side.bytes - before;
    if (fresh > 0 && limits_.spend && !limits_.spend(fresh)) return end(End::kLimit);
    if (!send(other, side.ended)) return end(End::kBroken);
    if (fresh < kPiece) break;
  }
  if (sides_[0].finished && sides_[1].finished) return end(End::kOrderly);
  set_events();
}

bool Tunnel::receive(Side& from, Side& to) {
  to.unsent.resize(kPiece);
  to.sent = 0;
  const ssize_t got = ::recv(from.socket.get(), to.unsent.data(), to.unsent.size(), 0);
  to.unsent.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) from.ended = true;
  from.bytes += static_cast<uint64_t>(got);
  last_ = std::chrono::steady_clock::now();
  return true;
}

bool Tunnel::send(Side& to, bool from_ended) {
  while (to.sent < to.unsent.size()) {
    const ssize_t sent =
        ::send(to.socket.get(), to.unsent.data() + to.sent, to.unsent.size() - to.sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    to.sent += static_cast<size_t>(sent);
    last_ = std::chrono::steady_clock::now();
  }
  std::string().swap(to.unsent);  // idle tunnels hold nothing
  to.sent = 0;
  if (!from_ended || to.finished) return true;
  to.finished = true;
  return ::shutdown(to.socket.get(), SHUT_WR) == 0 || errno == ENOTCONN;
}

void Tunnel::set_events() {
  for (size_t i = 0; i < sides_.size(); ++i) {
    const bool read = !sides_[i].ended && sides_[1 - i].unsent.empty();
    const bool write = !sides_[i].unsent.empty();
    sides_[i].watch->set_events((read ? int{Loop::kReadable} : 0) | (write ? int{Loop::kWritable} : 0) |
                                Loop::kNoHangup);
  }
}

void Tunnel::look_at_clock() {
  const auto quiet = std::chrono::steady_clock::now() - last_;
  const bool half = sides_[0].ended || sides_[1].ended;
  if (quiet >= (half ? limits_.half_closed : limits_.idle)) end(End::kIdle);
}

void Tunnel::end(End why) {
  const Sum sum{why, sides_[0].bytes, sides_[1].bytes};
  clock_.reset();
  soon_.reset();
  for (Side& side : sides_) {
    side.watch.reset();
    if (why != End::kOrderly) {
      const linger reset{1, 0};
      (void)::setsockopt(side.socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    side.socket.reset();
  }
  const auto done = std::move(done_);
  done(sum);
}

}  // namespace firestop::egress
