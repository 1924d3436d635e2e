// Bytes between two sockets as they are, both ways, for what is forwarded unread. Each way stops reading
// while the other side does not take what was read, so memory is kPiece a way; each way ends on its own.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"
#include "base/loop.h"

namespace firestop::egress {

class Tunnel {
 public:
  static constexpr size_t kPiece = 64u << 10;  // bytes that are on their way, each way
  enum class End {
    kOrderly,  // both sides said that they had sent everything
    kBroken,   // one side reset the connection
    kIdle,
    kLimit,  // Limits::spend said no
  };
  struct Limits {
    std::chrono::milliseconds idle{30 * 60 * 1000};        // without a byte either way
    std::chrono::milliseconds half_closed{2 * 60 * 1000};  // the same, once one side has ended
    // Told of every byte before it goes on; false ends the tunnel. May be empty.
    std::function<bool(uint64_t bytes)> spend;
  };
  struct Sum {
    End end{};
    uint64_t out = 0, in = 0;  // bytes from the guest, and to it
  };

  // Both sockets are connected and non-blocking. `first`: what was already read from the guest. `done` is
  // called once, from the loop, when everything has ended, and may destroy the tunnel; not after destruction.
  // Unless the end is orderly, both sides see a reset.
  Tunnel(Loop& loop, UniqueFd guest, UniqueFd origin, std::string first, Limits limits,
         std::function<void(const Sum&)> done);
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

 private:
  struct Side {
    UniqueFd socket;
    Loop::Handle watch;     // before the socket it goes
    std::string unsent;     // read from the other side
    size_t sent = 0;        // of unsent
    bool ended = false;     // it will send nothing more
    bool finished = false;  // it was told that nothing more comes
    uint64_t bytes = 0;     // that it sent
  };

  void turn(size_t index, int events);
  bool receive(Side& from, Side& to);
  bool send(Side& to, bool from_ended);
  void set_events();
  void look_at_clock();
  void end(End why);

  Loop& loop_;
  const Limits limits_;
  std::function<void(const Sum&)> done_;
  std::array<Side, 2> sides_;  // guest, origin
  std::chrono::steady_clock::time_point last_;
  Loop::Handle clock_, soon_;
};

}  // namespace firestop::egress
